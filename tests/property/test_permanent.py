"""Permanent cases: what random cases rarely meet, as mutations of the engine showed. Each meets every disturbance."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec, Subtrahend
from tests.property.cases import strategies
from tests.property.drive import Action, Case, Migrate, Rescale, Restart, check
from tests.property.queries import any_plan
from tests.property.rows import BEGIN, Pushed, Shape, cut, draw_rows, table

pytestmark = pytest.mark.property


@dataclass(frozen=True)
class Permanent:
    """Streams, rows in the order in which they are pushed, and queries that run from the first step to the last."""

    streams: tuple[StreamSpec, ...]
    sequence: Pushed
    queries: tuple[QuerySpec, ...]

    def case(self, cuts: tuple[int, ...]) -> Case:
        """The case with its rows cut into steps."""
        lives = tuple(Lifetime(f"q{number}", spec) for number, spec in enumerate(self.queries))
        return Case(self.streams, cut(self.streams, self.sequence, cuts), lives)


def sources(names: str, *, seconds: int | None = None, rows: int | None = None) -> tuple[SourceSpec, ...]:
    """A source for each stream, all with one window."""
    size = None if seconds is None else seconds * SECOND
    return tuple(SourceSpec(name, name, range=size, rows=rows) for name in names)


def ties(*texts: str) -> tuple[Condition, ...]:
    """Conjuncts over the streams they name."""
    return tuple(Condition(text, tuple(name for name in "ABCDE" if f"{name}." in text)) for text in texts)


def ids(names: str) -> tuple[Item, ...]:
    """The rows joined, and when."""
    return (*(Item(f"{name}.u", name.lower()) for name in names), Item("_ts"))


def drawn(seed: int, *queries: QuerySpec, **shape: Any) -> Permanent:
    """Random rows, in order unless said otherwise."""
    streams, sequence = draw_rows(Shape(seed, **{"sizes": (25, 25, 25), "span": 12, "keys": 3, **shape}))
    return Permanent(streams, sequence, queries)


CHAIN = ties("A.k = B.k", "B.n = C.n")
PERMANENT: dict[str, Permanent] = {
    "three streams over two keys": drawn(1, QuerySpec(sources("ABC", seconds=4), ids("ABC"), CHAIN)),
    "the same sources with a conjunct more and less": drawn(
        2,
        QuerySpec(sources("ABC", seconds=4), ids("ABC"), (*CHAIN, *ties("A.d < B.d"))),
        QuerySpec(sources("ABC", seconds=4), ids("ABC"), CHAIN),
        QuerySpec(sources("ABC", seconds=4), ids("ABC"), (*CHAIN, *ties("A.k > 0"))),
        QuerySpec(sources("ABC", seconds=5), ids("ABC"), CHAIN),
    ),
    "NaN within an open band": drawn(
        3, QuerySpec(sources("AB", seconds=3), ids("AB"), ties("A.d - B.d >= -0.5")), nulls=0.0
    ),
    "NaN as a key": drawn(4, QuerySpec(sources("AB", seconds=3), (*ids("AB"), Item("A.d")), ties("A.d = B.d"))),
    "counted windows over three streams": drawn(5, QuerySpec(sources("ABC", rows=3), ids("ABC"), CHAIN)),
    "sums over a join": drawn(
        6,
        QuerySpec(
            sources("AB", seconds=4),
            (Item("A.k", "k"), Item("COUNT(*)", "n"), Item("SUM(B.d)", "s", True), Item("MIN(A.d)", "m"), Item("_ts")),
            ties("A.k = B.k"),
            ("A.k",),
            2 * SECOND,
        ),
        disorder=3,
    ),
    "a difference of three": drawn(
        7,
        QuerySpec(
            sources("A", seconds=5),
            (Item("A.u"), Item("_ts")),
            subtracted=tuple(Subtrahend(s, ("k",)) for s in sources("BC", seconds=2)),
        ),
        disorder=3,
    ),
    "counted windows at instants": drawn(
        8,
        QuerySpec(sources("AB", rows=2), (Item("COUNT(*)", "n"), Item("_ts")), ties("A.k = B.k"), (), SECOND),
        QuerySpec(
            sources("A", rows=4), (Item("A.u"), Item("_ts")), subtracted=(Subtrahend(sources("B", rows=2)[0], ("k",)),)
        ),
        disorder=3,
    ),
    "a stream with itself": drawn(
        9,
        QuerySpec(
            (SourceSpec("x", "A", rows=4), SourceSpec("y", "A", range=3 * SECOND), SourceSpec("B", "B", range=SECOND)),
            (Item("x.u"), Item("y.u"), Item("B.u")),
            (Condition("x.k = y.k", ("x", "y")), Condition("y.d <= B.d", ("y", "B"))),
        ),
    ),
}


@pytest.fixture(scope="module", params=PERMANENT)
def permanent(request: pytest.FixtureRequest) -> Permanent:
    return PERMANENT[request.param]


CUTS = tuple(range(10, 100, 15))


def test_any_plan(permanent: Permanent) -> None:
    case = permanent.case(CUTS)
    expected = case.expected()
    assert all(answer.table.num_rows for answer in expected.values())
    for seed in range(6):
        plans = {q.name: any_plan(Random(seed), q.spec) for q in case.queries}
        check(case, expected, plans, label=str(plans))


@pytest.mark.parametrize("sharing", ["auto", pytest.param("off", marks=pytest.mark.verify)])
def test_any_migration(permanent: Permanent, sharing: str) -> None:
    """One at each step, and two at one step, by each strategy."""
    case = permanent.case(CUTS)
    expected = case.expected()
    rng = Random(1)
    for strategy in strategies():
        moves: list[Action] = []
        for query, step in itertools.product(case.queries, range(len(case.steps))):
            moves += [Migrate(step, query.name, any_plan(rng, query.spec), strategy) for _ in range(1 + step % 2)]
        check(case, expected, None, moves, sharing=sharing, label=strategy)


def test_any_cut_and_lanes(permanent: Permanent) -> None:
    """One step, a step for every few rows; lanes that change on the way. Joins that count rows need them in order."""
    expected = permanent.case(()).expected()
    for cuts, lanes in (((), 1), (tuple(range(5, 100, 6)), 1), (CUTS, 3), ((50,), 5)):
        case = permanent.case(cuts)
        changes = [Rescale(step, 1 + step % 4) for step in range(1, len(case.steps), 2)]
        for actions in ([], changes):
            check(case, expected, None, actions, lanes=lanes, label=f"{len(case.steps)} steps, {lanes} lanes")


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_at_every_step(permanent: Permanent, crash: bool) -> None:
    case = permanent.case(CUTS)
    actions = [Restart(step, crash) for step in range(len(case.steps))]
    check(case, case.expected(), None, actions)


def test_each_query_beside_the_others(permanent: Permanent) -> None:
    """The others come and go at different steps, also under a name that was there before."""
    case = permanent.case(CUTS)
    steady = case.queries[0]
    others = [replace(q, name=f"other{n}", since=n % 3, until=4 + n % 2) for n, q in enumerate(case.queries)]
    again = Lifetime("twin", steady.spec, since=3)
    beside = replace(case, queries=(steady, *others, again))
    check(beside, beside.expected())


def idle_case(timeout: int) -> Case:
    """Two queries share a stream that falls silent; each has another stream, which have come to different times."""
    shape = Shape(3, sizes=(1, 1, 1), span=1)
    streams = tuple(replace(s, idle_timeout=timeout if s.name == "B" else None) for s in draw_rows(shape)[0])

    def row(stream: int, second: int, unique: int) -> dict[str, Any]:
        values = dict.fromkeys(streams[stream].schema.names)
        return {"ABC"[stream]: table(streams[stream], [{**values, "k": 1, "u": unique, "ts": BEGIN + second * SECOND}])}

    steps = (
        {**row(0, 0, 1), **row(1, 0, 2), **row(2, 0, 3)}, row(0, 10, 4), row(2, 6, 5),
        row(1, 5, 6), row(1, 7, 7), row(1, 11, 8), {**row(0, 30, 9), **row(2, 30, 10)}, row(1, 29, 11), row(1, 30, 12),
    )  # fmt: skip
    asked = [
        QuerySpec(sources(names, seconds=20), ids(names), ties(f"{names[0]}.k = {names[1]}.k"))
        for names in ("AB", "BC")
    ]
    return Case(streams, steps, tuple(Lifetime(f"q{n}", spec) for n, spec in enumerate(asked)))


@pytest.mark.parametrize("timeout", [9, 10])
def test_an_idle_stream_of_two_queries(timeout: int) -> None:
    """Ten seconds of silence: idle by a timeout of nine, not yet by ten. The slower query decides on the watermark."""
    case = idle_case(timeout * SECOND)
    found = check(case, case.expected())
    late = found.engine.late.get("B")
    assert (late.column("u").to_pylist() if late is not None else []) == ([6, 11] if timeout == 9 else [11])


def test_the_permanent_rows_hold_what_they_claim() -> None:
    """NaN of both signs, both zeros, nulls and ties."""
    rows = [values for _, values in PERMANENT["NaN as a key"].sequence]
    numbers = [row["d"] for row in rows if row["d"] is not None]
    assert {math.copysign(1, d) for d in numbers if math.isnan(d)} == {1.0, -1.0}
    assert {math.copysign(1, d) for d in numbers if d == 0} == {1.0, -1.0}
    assert any(row["d"] is None for row in rows)
    assert len({row["ts"] for row in rows}) < len(rows) / 2
