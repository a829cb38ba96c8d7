"""Random cases: streams, rows in steps, queries that fit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter

import midstream as ms
from tests.oracle.answer import Answer
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import Item, QuerySpec
from tests.property.drive import Action, Case, Migrate, Rescale, Restart
from tests.property.queries import KINDS, plans, queries
from tests.property.rows import TIME_TYPES, Pushed, Shape, cut, draw_rows

LARGEST = {1: 60, 2: 60, 3: 30, 4: 15, 5: 9}
"""The most rows a stream has, by the number of sources of the largest query."""

MOST_RESULTS = 4000
"""Cases with more results are passed over."""


@st.composite
def cuts(draw: st.DrawFn) -> tuple[int, ...]:
    """Where rows are cut into steps, in percent; doubled cuts make empty steps."""
    count, rng = draw(st.sampled_from((3, 2, 4, 7, 1, 0))), Random(draw(st.integers(0, 2**16)))
    drawn = [rng.randrange(101) for _ in range(count)]
    return tuple(rng.choice(drawn) if rng.random() < 0.2 else place for place in drawn)


@dataclass(frozen=True)
class Drawn:
    """A case, and the same rows before they were cut into steps."""

    case: Case
    sequence: Pushed
    shape: Shape
    expected: Mapping[str, Answer]

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        """What hypothesis shows of a case that fails; the rows are in the program it notes."""
        asked = [f"{q.name} ({q.since}..{q.until}): {q.spec.cql()}" for q in self.case.queries]
        sizes = [{name: rows.num_rows for name, rows in step.items()} for step in self.case.steps]
        printer.text(f"Drawn({self.shape}, {asked}, rows of each step: {sizes})")

    def spec(self, name: str = "q0") -> QuerySpec:
        """A query of the case."""
        return next(q.spec for q in self.case.queries if q.name == name)

    def alone(self) -> Case:
        """The case with q0 only."""
        return replace(self.case, queries=self.case.queries[:1])

    def with_twin(self, spec: QuerySpec, since: int) -> Drawn:
        """The case with a query that is near to q0, from another step on: they may share state, not answers."""
        case = replace(self.case, queries=(*self.case.queries, Lifetime("twin", spec, since)))
        return replace(self, case=case, expected=case.expected())


@st.composite
def twins(draw: st.DrawFn, spec: QuerySpec) -> QuerySpec:
    """The query itself, or with another select list, a conjunct less, or another window."""
    change = draw(st.sampled_from(("where", "where", "select", "window", "none")))
    if change == "select" and spec.every is None:
        aliases = [source.alias for source in spec.sources]
        return replace(spec, select=tuple(Item(f"{alias}.u", f"u{n}") for n, alias in enumerate(aliases)))
    if change == "where" and spec.where:
        left_out = draw(st.integers(0, len(spec.where) - 1))
        return replace(spec, where=spec.where[:left_out] + spec.where[left_out + 1 :])
    if change == "window" and spec.window is not None:
        return replace(spec, window=2 * spec.window)
    return spec


@st.composite
def shapes(draw: st.DrawFn, streams: int, largest: int, *, order: str = "any", idle: bool = False) -> Shape:
    """What rows are like. `order`: `in` order; `timely`: disorder, but none late; `late`: some late; `any` of these."""
    manner = draw(st.sampled_from(("in", "in", "timely", "late"))) if order == "any" else order
    disorder = 0 if manner == "in" else draw(st.sampled_from((2, 4, 10)))
    ahead = st.lists(st.sampled_from((0, 0, 3, 20, 7200)), min_size=streams, max_size=streams)
    leads = draw(ahead) if manner != "in" and draw(st.booleans()) else ()
    full = draw(st.integers(0, 3)) > 0
    sizes = (largest,) * streams if full else tuple(draw(st.integers(0, largest)) for _ in range(streams))
    return Shape(
        seed=draw(st.integers(0, 2**20)),
        sizes=sizes,
        span=draw(st.sampled_from((4, 10) if largest < LARGEST[3] else (4, 10, 20, 40))),
        keys=draw(st.sampled_from((2, 1) if largest < LARGEST[3] else (4, 3, 2, 1))),
        nulls=draw(st.sampled_from((0.1, 0.0, 0.3))),
        skew=draw(st.booleans()),
        jitter=draw(st.booleans()),
        disorder=disorder,
        leads=tuple(leads),
        slack=draw(st.sampled_from((0, 1, 3))) if manner == "late" else None,
        idle=draw(st.sampled_from((None, 2, 6))) if idle else None,
        time=draw(st.sampled_from(TIME_TYPES)),
        zoned=draw(st.sampled_from((tuple[str, ...](), ("A",), ("B", "D")))),
    )


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    kinds: Sequence[str] = KINDS,
    order: str = "any",
    count: int = 1,
    come_and_go: bool = False,
    rows_windows: bool = True,
    idle: bool = False,
    least: int = 2,
    sources: int = 5,
) -> Drawn:
    """A case of `count` queries q0, q1, ...; all but q0 `come_and_go`."""
    streams = draw(st.sampled_from((2, 3, 5, 4, 1)))
    names = "ABCDE"[:streams]
    specs = [
        draw(queries(names, kinds=kinds, rows_windows=rows_windows, least=least, sources=sources)) for _ in range(count)
    ]
    largest = LARGEST[max(len(spec.all_sources) for spec in specs)]
    shape = draw(shapes(streams, largest, order=order, idle=idle))
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, draw(cuts()), bare=draw(st.booleans()))
    lives = [Lifetime("q0", specs[0])]
    for number, spec in enumerate(specs[1:], start=1):
        since = draw(st.integers(0, len(steps) - 1)) if come_and_go else 0
        until = draw(st.none() | st.integers(since + 1, len(steps))) if come_and_go else None
        lives.append(Lifetime(f"q{number}", spec, since, until))
    case = Case(declared, steps, tuple(lives), shape.in_order)
    expected = case.expected()
    assume(all(answer.table.num_rows <= MOST_RESULTS for answer in expected.values()))
    return Drawn(case, sequence, shape, expected)


@st.composite
def migrations(draw: st.DrawFn, case: Case, most: int = 4) -> tuple[Migrate, ...]:
    """Migrations of the case's queries to any plan by any strategy at any step, also several at one step."""
    found: list[Migrate] = []
    for _ in range(draw(st.integers(1, most))):
        query = draw(st.sampled_from(case.queries))
        last = len(case.steps) if query.until is None else query.until
        step = draw(st.sampled_from(range(query.since, last)))
        found.append(Migrate(step, query.name, draw(plans(query.spec)), draw(st.sampled_from(strategies()))))
    return tuple(found)


@st.composite
def rescales(draw: st.DrawFn, case: Case, most: int = 2) -> tuple[Action, ...]:
    """Changes of the number of lanes."""
    steps, lanes = st.integers(0, len(case.steps) - 1), st.sampled_from((1, 2, 3, 5, 40))
    return tuple(Rescale(draw(steps), draw(lanes)) for _ in range(draw(st.integers(0, most))))


@st.composite
def restarts(draw: st.DrawFn, case: Case, most: int = 3) -> tuple[Action, ...]:
    """Restarts, some amid the step."""
    steps = st.integers(0, len(case.steps) - 1)
    return tuple(Restart(draw(steps), draw(st.booleans())) for _ in range(draw(st.integers(1, most))))


def strategies() -> list[str]:
    """The names of all migration strategies there are."""
    return sorted(ms.strategies())
