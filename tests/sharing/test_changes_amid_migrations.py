"""A query is given other windows and filters while migrations are under way: permanent cases."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.oracle.arrival import Step
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec
from tests.sharing.case import Add, Case, Change, Move
from tests.sharing.draw import MODES
from tests.sharing.drive import run
from tests.sharing.family import Asked, Want, Window, reads
from tests.sharing.judge import Judge

pytestmark = pytest.mark.property

TIES = ("A.k = B.k", "A.n = C.n")


def asked(plan: str, a: Window, b: Window, c: Window) -> Asked:
    """A join of three streams by two keys, with a window on each; it names the rows it joins."""
    windows = dict(zip("ABC", (a, b, c), strict=True))
    sources = tuple(
        SourceSpec(name, name, rows=size) if kind == "rows" else SourceSpec(name, name, range=size)
        for name, (kind, size) in windows.items()
    )
    where = tuple(Condition(text, tuple(name for name in "ABC" if f"{name}." in text)) for text in TIES)
    spec = QuerySpec(sources, tuple(Item(f"{name}.u", name.lower()) for name in "ABC"), where)
    read = reads(spec, {name: name for name in "ABC"})
    return Asked(spec, plan, Want((("A", "B", "C"), frozenset(TIES)), windows, frozenset(), plan, read))


def last(rows: int) -> Window:
    """A window of so many rows."""
    return "rows", rows


def steps(*brought: dict[str, tuple[float, ...]]) -> Iterator[Step]:
    """Steps of rows of one key, known by their seconds."""
    number = 0
    for step in brought:
        tables: dict[str, pa.Table] = {}
        for name, seconds in step.items():
            columns = {
                "k": [0] * len(seconds),
                "n": [0] * len(seconds),
                "u": range(number, number + len(seconds)),
                "ts": [int(second * SECOND) for second in seconds],
            }
            tables[name] = pa.table({column: pa.array(values, pa.int64()) for column, values in columns.items()})
            number += len(seconds)
        yield tables


STREAMS = tuple(StreamSpec(name, pa.schema([(c, pa.int64()) for c in ("k", "n", "u", "ts")])) for name in "CBA")


every_mode = pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "off"])
"""A query that runs by itself cannot be changed."""


def hold(case: Case) -> None:
    """Run a case; fail unless nothing is refused, all is as promised and something was answered."""
    found = run(case)
    Judge(case, found).check()
    assert not found.refused
    assert any(table.num_rows for segment in found.segments for table in segment.tables)


@every_mode
def test_rows_that_wait_for_a_new_plan_live_by_the_windows_of_the_step(mode: str) -> None:
    """Windows of rows grow, shrink and grow while `ghm` feeds a plan from queues of rows that others have given up."""
    plan = "(A (B C))"
    case = Case(
        STREAMS,
        tuple(
            steps(
                {"C": (0,)},
                {"C": (1,), "B": tuple(1 + i / 100 for i in range(29))},
                {"B": tuple(2 + i / 100 for i in range(19))},
                {"C": (3,), "B": tuple(3 + i / 100 for i in range(6))},
                {"A": (4,)},
                {"A": (5,), "B": (5,), "C": (5,)},
            )
        ),
        (
            Add(0, "q", asked("((A B) C)", last(5), last(5), ("range", 5 * SECOND))),
            Move(0, "q", plan, "jisc"),
            Move(2, "q", "stairs((A (B C)))", "ghm", {"budget": 50}),
            Change(2, "q", asked(plan, last(40), last(40), ("range", 100_000))),
            Change(3, "q", asked(plan, last(1), last(5), ("range", SECOND))),
            Change(4, "q", asked(plan, last(5), last(1), ("range", 30 * SECOND))),
        ),
        sharing=mode,
    )
    hold(case)


@pytest.mark.parametrize("mode", ["mem_opt", "pull_up"])
@pytest.mark.parametrize("strategy", ["gpt", "parallel_track", "ghm"])
@pytest.mark.parametrize("who", ["it grows", "another grows", "another comes"])
def test_rows_from_before_a_migration_matter_for_longer_where_windows_grow(mode: str, strategy: str, who: str) -> None:
    """The window of the query that migrates grows, or that of another one with which it shares its plan."""
    moved = "[A: B C | B: A C | C: A B]"
    windows = [(("range", size * SECOND),) * 3 for size in (4, 20)]
    narrow, wide = (asked("((A B) C)", *size) for size in windows)
    case = Case(
        STREAMS,
        tuple(
            steps(
                {"A": (0,), "B": (0,), "C": (0,)},
                {"A": (1,), "B": (1,), "C": (1,)},
                {"A": (2,), "B": (2,), "C": (2,)},
                {"A": (6,), "B": (6,), "C": (6,)},
                {"A": (7,), "B": (7,), "C": (7,)},
                {"C": (10,)},
                {"B": (11,), "A": (11,)},
            )
        ),
        (
            Add(0, "q", narrow),
            *([Add(0, "r", narrow)] if who == "another grows" else []),
            Move(1, "q", moved, strategy, {"budget": 1} if strategy == "ghm" else {}, together=True),
            *([Add(2, "r", asked(moved, *windows[1]))] if who == "another comes" else []),
            *([Change(2, "r" if who == "another grows" else "q", wide)] if who != "another comes" else []),
        ),
        sharing=mode,
    )
    hold(case)
