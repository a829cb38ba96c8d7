"""An operator of another distribution is a form of plans; the suite for authors of operators sees what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
import midstream.operators.forms as room
from midstream.operators.operator_form import OperatorForm, form, forms
from midstream.operators.window_join import WindowJoin
from midstream.plan.notation import form_names
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations
from midstream.testing import check_operator
from tests.extension import distribution

MIRRORED = '''
"""An operator of another package."""

from dataclasses import replace

from midstream.operators.operator_form import OperatorForm
from midstream.operators.window_join import WindowJoin


class Mirrored(OperatorForm):
    """Runs every join of a tree with its sides exchanged."""

    name = "mirrored"

    def compile(self, tree):
        if not isinstance(tree, WindowJoin):
            return tree
        on = tree.on
        low, high = (None if bound is None else -bound for bound in (on.high, on.low))
        return replace(
            tree,
            left=self.compile(tree.right),
            right=self.compile(tree.left),
            left_state=tree.right_state,
            right_state=tree.left_state,
            on=replace(on, left_key=on.right_key, right_key=on.left_key, low=low, high=high),
        )
'''


def forget() -> None:
    forms.cache_clear()
    form_names.cache_clear()


@pytest.fixture
def mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The form's name while its distribution is installed."""
    declared = {"midstream.operators": {"mirrored": "mirrored:Mirrored"}}
    monkeypatch.syspath_prepend(distribution(tmp_path / "another", declared, mirrored=MIRRORED))
    forget()
    yield "mirrored"
    forget()


def joined() -> ms.Engine:
    engine = ms.Engine()
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    return engine


SQL = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 9 SECONDS"


def test_a_plan_is_run_by_another_packages_operator(mirrored: str, tmp_path: Path) -> None:
    engine = joined()
    engine.add_query("q", SQL, plan="mirrored(((A B) C))")
    row = pa.table({"k": [1], "ts": pa.array([0], pa.timestamp("us"))})
    engine.push({"A": row, "B": row})
    engine.migrate("q", "((A B) C)", strategy="moving_state")
    assert engine.push({"C": row})["q"].num_rows == 1
    engine.migrate("q", "mirrored((A (B C)))", strategy="jisc")
    engine.push()
    engine.save(tmp_path / "saved")
    again = ms.Engine.load(tmp_path / "saved")
    assert again.push({"A": row})["q"].num_rows == 1
    assert again.explain("q", format="json")["plan"] == "mirrored((A (B C)))"
    check_operator(type(form(mirrored)), cases=5)


def test_a_file_in_the_room_of_forms_is_all_that_a_form_is(tmp_path: Path) -> None:
    (tmp_path / "mirrored.py").write_text(MIRRORED)
    room.__path__.append(str(tmp_path))
    forget()
    try:
        engine = joined()
        engine.add_query("q", SQL, plan="mirrored(((A B) C))")
        assert engine.explain("q", format="json")["plan"] == "mirrored(((A B) C))"
    finally:
        room.__path__.remove(str(tmp_path))
        sys.modules.pop(f"{room.__name__}.mirrored", None)
        forget()


def test_a_plan_of_an_operator_that_is_not_installed_is_refused() -> None:
    with pytest.raises(ms.PlanError):
        joined().add_query("q", SQL, plan="mirrored(((A B) C))")


@pytest.mark.parametrize("name", forms())
def test_every_form_passes_the_suite(name: str) -> None:
    check_operator(type(form(name)), cases=5)


def _fields(join: WindowJoin) -> dict[str, Any]:
    return {field.name: getattr(join, field.name) for field in fields(join)}


class LossyJoin(WindowJoin):
    """Forgets the last pair of each step."""

    def advance(self, lane: Lane) -> Combinations:
        found = super().advance(lane)
        return found.take(slice(0, max(len(found) - 1, 0)))


class Lossy(OperatorForm):
    """Loses rows."""

    name = "mirrored"

    def compile(self, tree: Operator) -> Operator:
        if not isinstance(tree, WindowJoin):
            return tree
        return LossyJoin(**{**_fields(tree), "left": self.compile(tree.left), "right": self.compile(tree.right)})


class Lean(OperatorForm):
    """Keeps no new rows of the first input, in a state that bears the id of the tree's."""

    name = "mirrored"

    def compile(self, tree: Operator) -> Operator:
        return LeanJoin(**_fields(tree)) if isinstance(tree, WindowJoin) and tree.need is None else tree


class LeanJoin(WindowJoin):
    def advance(self, lane: Lane) -> Combinations:
        found = super().advance(lane)
        state = lane.join(self.left_state)
        assert state.delta is not None
        state.delta = state.delta.take(slice(0, 0))
        return found


@pytest.mark.parametrize(("kind", "message"), [(Lossy, "by_form.*lacks"), (Lean, "lacks|that of the tree")])
def test_an_operator_that_breaks_its_contract_is_reported_with_its_case(
    mirrored: str, kind: type[OperatorForm], message: str
) -> None:
    with pytest.raises(AssertionError, match=rf"mirrored, seed \d+: step \d+, .*{message}"):
        check_operator(kind, cases=20)
