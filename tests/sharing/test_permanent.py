"""Permanent cases: what random cases rarely meet, and what once went wrong. Every mode of sharing meets each."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import midstream as ms
from tests.conformance.trips import strategies
from tests.oracle.spec import Item, SourceSpec
from tests.property.drive import Rescale, Restart
from tests.property.rows import Shape, cut, draw_rows
from tests.sharing.case import Action, Add, Case, Change, Drop, Move, Reshare
from tests.sharing.draw import MODES
from tests.sharing.drive import Run, run
from tests.sharing.family import Asked, reads
from tests.sharing.judge import Judge, said
from tests.sharing.plain import asked

WAYS = {
    "m_join": ("((A B) C)", "[A: B C | B: A C | C: B A]"),
    "cacq": ("((A B) C)", "eddy(A B C)"),
    "stairs": ("((A B) C)", "stairs((A (B C)))"),
    "jisc_stairs": ("stairs(((A B) C))", "stairs((A (B C)))"),
}
"""The plans between which a strategy goes, if not between trees."""

CUTS = (15, 30, 45, 60, 75, 90)
LEFT, RIGHT = "((A B) C)", "(A (B C))"
AB, ABC = (draw_rows(Shape(seed, (size,) * names, span=16, keys=3)) for seed, size, names in ((1, 40, 2), (2, 25, 3)))
LATE = draw_rows(Shape(3, (40, 40), span=16, keys=3, disorder=4, slack=2, jitter=True))


def hold(case: Case, mode: str) -> tuple[Run, Counter[str]]:
    """Run a case in a mode; fail unless all is as promised and something was answered."""
    case = replace(case, sharing=mode)
    found = run(case)
    checked = Judge(case, found).check()
    assert any(table.num_rows for segment in found.segments for table in segment.tables)
    return found, checked


def pairs(*actions: Action, late: bool = False) -> Case:
    """Two streams, seven steps."""
    streams, rows = LATE if late else AB
    return Case(streams, cut(streams, rows, CUTS), actions, in_order=not late)


def triples(*actions: Action) -> Case:
    """Three streams, seven steps."""
    streams, rows = ABC
    return Case(streams, cut(streams, rows, CUTS), actions, in_order=True)


def rich(found: Asked) -> Asked:
    """The query with every column of every stream, so that rows are held with all that anybody may ask."""
    assert found.want is not None
    spec = replace(found.spec, select=(Item("*"), Item("_ts")))
    return Asked(spec, found.plan, replace(found.want, reads=reads(spec, {name: name for name in found.want.windows})))


def seen(found: Run, query: str, step: int) -> str | int:
    """What a query was said to see from a step on."""
    return next(said(s)[0].rows for s in found.segments if s.query == query and s.begin == step)


pytestmark = pytest.mark.property
every_mode = pytest.mark.parametrize("mode", MODES)


@every_mode
@pytest.mark.parametrize("late", [False, True])
def test_a_window_for_every_horizon(mode: str, late: bool) -> None:
    """Many windows, some of them equal, one of nothing; half of them come later."""
    sizes = (0, 1, 1, 2, 3, 5, 8, 13, 13)
    hold(
        pairs(*(Add(0 if n % 2 else n // 2, f"q{n}", asked("AB", size)) for n, size in enumerate(sizes)), late=late),
        mode,
    )


@every_mode
def test_one_not_wider_sees_all_at_once(mode: str) -> None:
    found, _ = hold(
        pairs(
            Add(0, "wide", asked("AB", 8)), Add(3, "narrow", asked("AB", 3, "A.k > 0")), Add(4, "equal", asked("AB", 8))
        ),
        mode,
    )
    wanted = "new" if mode == "off" else "all"
    assert [seen(found, "narrow", 3), seen(found, "equal", 4)] == [wanted, wanted]


@every_mode
def test_a_column_that_was_not_kept(mode: str) -> None:
    """Not wider, but it reads what the rows were not held with."""
    found, _ = hold(pairs(Add(0, "wide", asked("AB", 8)), Add(3, "narrow", asked("AB", 3, "A.n > 0"))), mode)
    assert seen(found, "narrow", 3) == "new"


@every_mode
def test_one_that_is_wider_knows_from_when_it_is_exact(mode: str) -> None:
    found, _ = hold(pairs(Add(0, "narrow", asked("AB", 1)), Add(4, "wide", asked("AB", 10))), mode)
    assert mode == "off" or isinstance(seen(found, "wide", 4), int)


@every_mode
def test_a_filter_that_no_query_had(mode: str) -> None:
    """What its rows were is gone where no running filter let them pass."""
    found, _ = hold(
        pairs(
            Add(0, "some", asked("AB", 5, "A.n > 1")),
            Add(3, "more", asked("AB", 5, "A.n > 0")),
            Add(5, "other", asked("AB", 5, "A.s LIKE 'a%'", "B.ok")),
        ),
        mode,
    )
    assert seen(found, "more", 3) == "new" or mode != "off"


@every_mode
def test_the_widest_goes_and_comes_back(mode: str) -> None:
    """In the step after, and in the very step: nothing may be left of what it held, or all of it."""
    hold(
        pairs(
            Add(0, "narrow", asked("AB", 1)),
            Add(0, "wide", asked("AB", 10)),
            Drop(3, "wide"),
            Add(4, "wide", asked("AB", 10)),
            Drop(5, "wide"),
            Add(5, "wide", asked("AB", 10)),
        ),
        mode,
    )


@every_mode
def test_windows_and_filters_change(mode: str) -> None:
    """Narrower and wider again, twice in one step, in the step in which it came, and beside others that stay."""
    hold(
        pairs(
            Add(0, "steady", asked("AB", 4)),
            Add(0, "q", asked("AB", 8)),
            Change(2, "q", asked("AB", 2)),
            Change(3, "q", asked("AB", 8, "B.n > 0")),
            Change(4, "q", asked("AB", 1)),
            Change(4, "q", asked("AB", 9)),
            Add(5, "late", asked("AB", 1)),
            Change(5, "late", asked("AB", 6)),
            late=True,
        ),
        mode,
    )


@every_mode
def test_a_change_to_a_filter_that_another_has(mode: str) -> None:
    """The other's window is narrower: what passes the filter was held for the one that changes, under its old one."""
    hold(
        pairs(
            Add(0, "q", rich(asked("AB", 8))),
            Add(1, "other", rich(asked("AB", 0, "A.k > 0", "B.k > 0"))),
            Change(3, "q", rich(asked("AB", 8, "A.k > 0", "B.k > 0"))),
        ),
        mode,
    )


@every_mode
def test_one_without_a_filter_joins_one_with(mode: str) -> None:
    """By coming and by a change; neither loses what it had."""
    hold(
        pairs(
            Add(0, "some", asked("AB", 13, "A.k > 0")),
            Add(1, "other", asked("AB", 13, "A.n > 0", "B.k > 0"), history=False),
            Add(2, "all", asked("AB", 5)),
            Change(4, "other", asked("AB", 3)),
        ),
        mode,
    )


@every_mode
def test_a_filter_that_is_null(mode: str) -> None:
    """NULL counts as false, in a query by itself and in one of several."""
    for names in (("q",), ("q", "r")):
        hold(pairs(*(Add(0, name, asked("AB", 5, "A.n / A.k >= 1", "B.s NOT LIKE '%b'")) for name in names)), mode)


@every_mode
def test_a_stream_of_which_no_column_is_read(mode: str) -> None:
    """Every row meets every other; of one stream nothing but its times matters."""
    wide, narrow = (asked("AB", size) for size in (3, 1))
    alone = [
        replace(found, spec=replace(found.spec, where=(), select=found.spec.select[:1])) for found in (wide, narrow)
    ]
    tie = [replace(found, want=replace(found.want, tie=(("A", "B"), frozenset()))) for found in alone if found.want]
    hold(pairs(Add(0, "wide", tie[0]), Add(2, "narrow", tie[1])), mode)


@every_mode
def test_everybody_goes_and_others_come(mode: str) -> None:
    hold(
        pairs(
            Add(0, "q", asked("AB", 8)),
            Drop(2, "q"),
            Add(2, "r", asked("AB", 8)),
            Drop(4, "r"),
            Add(5, "s", asked("AB", 8)),
        ),
        mode,
    )


@every_mode
def test_plans_of_three_streams(mode: str) -> None:
    """Members by both trees and by no tree; one that joins two of the streams."""
    hold(
        triples(
            Add(0, "left", asked("ABC", 5, plan=LEFT)),
            Add(0, "right", asked("ABC", 4, plan=RIGHT)),
            Add(0, "pair", asked("AB", 6)),
            Add(0, "some", asked("AB", 3, "A.k > 1")),
            Add(2, "orders", asked("ABC", 3, "B.n > 0", plan="[A: B C | B: A C | C: B A]")),
            Add(2, "eddy", asked("ABC", 5, plan="eddy(A B C)")),
            Add(3, "later", asked("ABC", 8, plan=LEFT)),
            Add(4, "last", asked("ABC", 2, "C.n > 0", plan=RIGHT)),
        ),
        mode,
    )


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "push_down"])
def test_more_filters_than_a_word_has_bits(mode: str) -> None:
    """Some more at once, and others when most of those have gone."""
    first = [Add(0, f"q{n}", asked("AB", 4, f"A.k + {n} > {n}", f"A.n < {n}")) for n in range(65)]
    gone = [Drop(2, f"q{n}") for n in range(5, 65)]
    again = [Add(3, f"r{n}", asked("AB", 4, f"A.k * {n} > {n}")) for n in range(10)]
    case = replace(pairs(*first, *gone, *again), sharing=mode)
    found = run(case)
    judge = Judge(case, found)
    judge.alike = False
    judge.check()


@pytest.mark.parametrize("mode", ["mem_opt", "cpu_opt"])
@pytest.mark.parametrize("together", [False, True])
def test_members_migrate(mode: str, together: bool) -> None:
    """By every strategy that accepts it, there and back, beside members that stay."""
    for strategy in strategies():
        old, new = WAYS.get(strategy, (LEFT, RIGHT))
        case = triples(
            Add(0, "q", asked("ABC", 6, plan=old)),
            Add(0, "stays", asked("ABC", 4, "A.n > 0", plan=old)),
            Add(2, "comes", asked("ABC", 5, plan=old)),
            *(Move(step, "q", plan, strategy, {}, together) for step, plan in ((2, new), (4, old), (5, new))),
            Change(5, "stays", asked("ABC", 7)),
        )
        found, _ = hold(case, mode)
        assert strategy == "pause_drain_resume" or len(found.refused) < 3


@every_mode
def test_restarts_and_lanes(mode: str) -> None:
    """At every step, with what is waiting for it; also amid it."""
    changes = (
        Add(0, "wide", asked("ABC", 8)),
        Add(0, "narrow", asked("ABC", 2)),
        Add(2, "late", asked("ABC", 5, "A.n > 0")),
        Change(3, "narrow", asked("ABC", 6)),
        Drop(4, "wide"),
        Add(5, "wide", asked("ABC", 9)),
    )
    restarts = [Restart(step, step % 2 == 0) for step in range(7)]
    lanes = [Rescale(step, 1 + step % 3) for step in range(1, 7)]
    hold(triples(*sorted((*changes, *restarts, *lanes), key=lambda action: action.step)), mode)


@every_mode
def test_sharing_changes_its_mode(mode: str) -> None:
    """Through all modes, a step each."""
    begun = (
        Add(0, "wide", asked("AB", 8)),
        Add(0, "narrow", asked("AB", 2, "A.n > 0")),
        Add(3, "late", asked("AB", 5)),
    )
    modes = [Reshare(step, other) for step, other in enumerate(MODES, start=1)]
    hold(pairs(*sorted((*begun, *modes), key=lambda action: action.step)), mode)


@every_mode
def test_rows_are_counted(mode: str) -> None:
    """Windows of rows, of different sizes on either side, and of rows here and time there."""

    def counted(rows: int, *filters: str) -> Add:
        found = asked("AB", 5, *filters)
        sources = (SourceSpec("A", "A", rows=rows), SourceSpec("B", "B", rows=2 * rows))
        assert found.want is not None
        windows = {"A": ("rows", rows), "B": ("rows", 2 * rows)}
        spec = replace(found.spec, sources=sources, window=None)
        return Add(0, f"q{rows}{len(filters)}", replace(found, spec=spec, want=replace(found.want, windows=windows)))

    begun = [counted(rows) for rows in (1, 2, 5)]
    later = [replace(counted(rows, "A.n > 0"), step=3) for rows in (1, 4, 8)]
    hold(pairs(*begun, *later), mode)
    wider, narrow = replace(counted(8), step=2), replace(counted(3), step=4)
    found, _ = hold(pairs(*begun, wider, narrow), mode)
    assert seen(found, "q30", 4) == ("new" if mode == "off" else "all")


@every_mode
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("how", ["no history", "added", "changed", "added twice", "restarted"])
def test_rows_that_come_out_of_order_after_a_command_are_joined(mode: str, lanes: int, how: str) -> None:
    """The query reads a column that no row was kept with; what arrives later may be older than what has arrived."""
    second, text = 1_000_000, "SELECT A.id AS a, B.id AS b FROM A, B WHERE A.k = B.k"
    wanted = f"{text} AND A.v < 40 WINDOW 1 SECONDS"
    engine = ms.Engine(sharing=mode, lanes=lanes)
    for stream in "AB":
        engine.create_stream(
            stream, "id BIGINT, ts TIMESTAMP, k BIGINT, v BIGINT", timestamp="ts", lateness="12 seconds"
        )

    def rows(number: int, time: int, key: int) -> pa.Table:
        times = pa.array([time * second], pa.timestamp("us"))
        return pa.table({"id": [number], "ts": times, "k": [key], "v": [5]})

    engine.add_query("running", f"{text} WINDOW 2 SECONDS")
    if how == "changed" and mode != "off":
        engine.add_query("q", f"{text} WINDOW 1 SECONDS")
    engine.push({"A": rows(1, 20, 7), "B": rows(2, 20, 8)})
    if how == "changed" and mode != "off":
        engine.change_query("q", wanted)
    else:
        engine.add_query("q", wanted, history=how != "no history")
    for number, time in enumerate((15, 16, 25)):
        found = engine.push({"A": rows(10 + number, time, number), "B": rows(20 + number, time, number)})
        assert found["q"].to_pylist() == [{"a": 10 + number, "b": 20 + number}]
        if how == "restarted":
            with tempfile.TemporaryDirectory() as folder:
                engine.save(f"{folder}/saved")
                engine = ms.Engine.load(f"{folder}/saved")
    # A row that arrived since the command waits for its partner, whatever has become of the query meanwhile.
    engine.push({"A": rows(30, 17, 9)})
    if how == "changed" and mode != "off":
        engine.change_query("q", wanted.replace("A.v < 40", "A.v < 40 AND A.v < 50"))
    if how == "added twice":
        engine.add_query("q2", wanted)
    found = engine.push({"B": rows(31, 17, 9)})
    due = [{"a": 30, "b": 31}]
    assert found["q"].to_pylist() == due
    assert how != "added twice" or mode == "off" or found["q2"].to_pylist() == due
