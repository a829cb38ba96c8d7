"""An operator that is copied keeps every field: over other children, in a view, and as a class that extends its own."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from inspect import isabstract
from typing import Any

import pytest

import midstream
from midstream.migration.strategy_contract import strategies
from midstream.migration.under_way.transition import Transition
from midstream.operators.forms.stairs_form import StairsJoin, routed
from midstream.operators.window_join import WindowJoin
from midstream.plan.signature import ViewKind, ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator, View
from tests.property.drive import start
from tests.unit.operators.test_equal_content import FORMS, QUERIES, STEPS, STREAMS

VIEW = ViewName("q.3.0:A+B", ViewKind.NEW)

WAYS = {
    "m_join": ("tree", "orders"),
    "cacq": ("tree", "eddy by rank"),
    "stairs": ("tree", "other stairs"),
    "jisc_stairs": ("stairs", "other stairs"),
}
"""The forms between which a strategy goes, if not between trees."""


@pytest.fixture(scope="module")
def seen() -> list[Operator]:
    """The operators of every plan form, of every strategy under way, and of joins in parts, as they run."""
    found: dict[tuple[type, str], Operator] = {}

    def noted(method: Callable[[Any, Lane], Any]) -> Callable[[Any, Lane], Any]:
        def note(self: Operator, lane: Lane) -> Any:
            found.setdefault((type(self), self.id), self)
            return method(self, lane)

        return note

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Operator, "delta", noted(Operator.delta))
        patch.setattr(Transition, "leave", noted(Transition.leave))  # Some are over before they are run.
        for form in FORMS:
            run(form)
        run("tree", sharing="push_down")
        for strategy in sorted({*strategies()} - {"pause_drain_resume"}):
            old, new = WAYS.get(strategy, ("tree", "other tree"))
            run(old, new, strategy)
    return list(found.values())


def run(form: str, other: str = "", strategy: str = "", *, sharing: str = "auto") -> None:
    engine = start(STREAMS, sharing=sharing)
    for name, query in QUERIES.items():
        if name == "some" and sharing == "push_down":
            continue  # So many filters are too many parts.
        engine.add_query(name, query.spec.cql(), plan=FORMS[form])
    for number, step in enumerate(STEPS[:4]):
        if number == 2 and strategy:
            engine.migrate("all", FORMS[other], strategy, together=True)
        engine.push(dict(step))


def classes(kind: type[Operator] = Operator) -> Iterator[type[Operator]]:
    """Every class of operators that there is, in whatever module."""
    for module in pkgutil.walk_packages(midstream.__path__, "midstream."):
        if (
            not module.name.startswith(("midstream.spark", "midstream.lab", "midstream.demo"))
            and "__main__" not in module.name
        ):
            importlib.import_module(module.name)
    for below in kind.__subclasses__():
        yield from ([] if isabstract(below) else [below])
        yield from classes(below)


def values(operator: Operator) -> dict[str, Any]:
    return {field.name: getattr(operator, field.name) for field in fields(operator)}


def test_every_class_is_seen(seen: list[Operator]) -> None:
    assert {type(operator) for operator in seen} == {
        kind for kind in classes() if kind.__module__.startswith("midstream")
    }


def test_over_other_children(seen: list[Operator]) -> None:
    turned = 0
    for operator in seen:
        children = [replace(child) for child in operator.children()]
        copied = operator.with_children(children)
        assert type(copied) is type(operator)
        assert values(copied) == values(operator)
        turned += any(a is b for a, b in zip(copied.children(), children, strict=True))
    assert turned > len(FORMS)


def test_in_a_view(seen: list[Operator]) -> None:
    """Only the names of the states that stand apart change, and those of the operators above them."""
    renamed = 0
    for operator in seen:
        if isinstance(operator, Transition):
            continue
        everything = frozenset(one.labels for one in operator.walk())
        copied = operator.in_view(View(VIEW, everything, everything))
        assert type(copied) is type(operator)
        for (producer, before), (same, after) in zip(operator.states(), copied.states(), strict=True):
            assert same.labels == producer.labels
            assert replace(after, signature=before.signature) == before
            assert after.signature == before.signature.within(VIEW)
            renamed += 1
        back = copied.in_view(View(VIEW, everything, everything))
        kept = {name: value for name, value in values(back).items() if name in ("rows", "on", "need", "spec", "policy")}
        assert kept == {name: value for name, value in values(operator).items() if name in kept}
    assert renamed > len(FORMS)


def test_as_another_class(seen: list[Operator]) -> None:
    """A tree of joins as stairs has the joins' conditions, states and needs."""
    needed = 0
    for operator in seen:
        assert values(type(operator).like(operator)) == values(operator)
        if type(operator) is not WindowJoin or any(isinstance(one, Transition) for one in operator.walk()):
            continue
        for before, after in zip(operator.walk(), routed(operator).walk(), strict=True):
            mine = {name: value for name, value in values(after).items() if name not in ("left", "right")}
            assert mine == {name: values(before)[name] for name in mine}
            assert isinstance(after, StairsJoin) == isinstance(before, WindowJoin)
            needed += isinstance(after, StairsJoin) and after.need is not None
    assert needed
