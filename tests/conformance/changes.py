"""Queries that are given other windows and filters while strategies carry them: `change_query` amid migrations.

The queries of a group ask the same at first and share what they can; each is carried by a strategy of its own, and all
change at the same steps to the same texts, so that the oracle is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from hypothesis import note

from midstream.model.events import MigrationProgressed, QueryChanged
from tests.conformance.cases import Drawn
from tests.conformance.trips import Trip, disturbances
from tests.oracle.spec import SECOND, Condition, QuerySpec, SourceSpec
from tests.property.queries import SELECTIONS
from tests.sharing.case import Action, Add, Case, Change, Move
from tests.sharing.drive import Run, run
from tests.sharing.family import Asked, Want, Window, reads
from tests.sharing.judge import Judge
from tests.sharing.reproduction import reduced, script

MODES = ("auto", "mem_opt", "cpu_opt", "pull_up")
"""The ways of sharing in which a query can change and its state can move."""

TIMES = (0, SECOND // 10, SECOND, 2 * SECOND, 5 * SECOND, 13 * SECOND)
COUNTS = (1, 2, 5, 9, 40)

Tell = Callable[[str, list[str]], None]


def can_change(spec: QuerySpec) -> bool:
    """Whether a query may be given another text: a join whose results are its answer."""
    return len(spec.sources) > 1 and spec.every is None and not spec.subtracted


def through_changes(rng: Random, drawn: Drawn, trips: Mapping[str, Trip], tell: Tell) -> None:
    """Carry queries along these trips, by strategy, while they change; tell of each what its case was like."""
    case = changing(rng, drawn, trips)
    try:
        found = check(case)
    except Exception:
        smaller = reduced(case, check)
        note(script(smaller))
        raise
    refused = [action for action, _ in found.refused]
    for name in trips:
        if any(isinstance(a, Move) and a.query == name and a not in refused for a in case.actions):
            tell(name, features(name, found))


def check(case: Case) -> Run:
    """Run a case; fail unless each query answers what it must."""
    found = run(case)
    judge = Judge(case, found)
    judge.alike = False
    judge.check()
    return found


def changing(rng: Random, drawn: Drawn, trips: Mapping[str, Trip]) -> Case:
    """A case in which all queries change at the same steps, mostly soon after their migrations have begun."""
    spec, steps = counted(rng, drawn.spec("main")), drawn.case.steps
    begun = [move.step for one in trips.values() for move in one.moves]
    variants: dict[int, QuerySpec] = {}
    for _ in range(rng.choice((1, 2, 3))):
        at = min(rng.choice(begun) + rng.choice((0, 1, 1, 1, 2)), len(steps) - 1)
        variants[at] = variant(rng, spec)
    actions: list[Action] = list(disturbances(rng, len(steps)))
    for name, one in trips.items():
        actions.append(Add(0, name, asked(spec, one.first)))
        for move in one.moves:
            options = {option: value for option, value in move.options.items() if option != "hold_new"}
            actions.append(Move(move.step, name, move.plan, move.strategy, options, rng.random() < 0.3))
        actions += [Change(step, name, asked(changed, one.first)) for step, changed in variants.items()]
    first = {Add: 0, Move: rng.choice((1, 2)), Change: rng.choice((1, 2))}
    ordered = sorted(actions, key=lambda action: (action.step, first.get(type(action), 3)))
    return Case(drawn.case.streams, steps, tuple(ordered), rng.choice(MODES), rng.choice((1, 1, 1, 2)))


def counted(rng: Random, spec: QuerySpec) -> QuerySpec:
    """The query, in four of ten cases with some windows of rows in place of windows in time."""
    if rng.random() < 0.6:
        return spec
    return replace(
        spec,
        sources=tuple(
            replace(source, range=None, rows=rng.choice(COUNTS)) if rng.random() < 0.6 else source
            for source in spec.sources
        ),
    )


def variant(rng: Random, spec: QuerySpec) -> QuerySpec:
    """The query with windows of other sizes, some filters less, and perhaps one more."""
    sources = tuple(
        replace(source, rows=rng.choice(COUNTS)) if source.rows is not None else _ranged(rng, spec, source)
        for source in spec.sources
    )
    where = [c for c in spec.where if len(c.aliases) > 1 or rng.random() < 0.6]
    if rng.random() < 0.4:
        alias = rng.choice(spec.aliases)
        where.append(Condition(rng.choice(SELECTIONS).format(a=alias), (alias,)))
    return replace(spec, sources=sources, where=tuple(where), window=None)


def _ranged(rng: Random, spec: QuerySpec, source: SourceSpec) -> SourceSpec:
    same = spec.window if source.range is None else source.range
    return replace(source, range=same if rng.random() < 0.3 else rng.choice(TIMES))


def asked(spec: QuerySpec, plan: str) -> Asked:
    """The query with what it wants of its sources."""
    windows: dict[str, Window] = {}
    for source in spec.sources:
        size = spec.window if source.range is None else source.range
        windows[source.alias] = ("rows", source.rows) if source.rows is not None else ("range", size or 0)
    ties = frozenset(c.text for c in spec.where if len(c.aliases) > 1)
    filters = frozenset(c.text for c in spec.where if len(c.aliases) < 2)
    read = reads(spec, {alias: alias for alias in spec.aliases})
    return Asked(spec, plan, Want((spec.aliases, ties), windows, filters, plan, read))


def features(name: str, found: Run) -> list[str]:
    """What the changes of a query were like."""
    events = found.engine.events
    changed = [e.step for e in events if isinstance(e, QueryChanged) and e.query == name]
    under_way = {e.step for e in events if isinstance(e, MigrationProgressed) and e.query == name}
    sources = next(segment.asked.spec.sources for segment in found.segments if segment.query == name)
    told = {
        "changed": changed,
        "changed amid": any({step - 1, step} & under_way for step in changed),
        "changed rows": changed and any(source.rows is not None for source in sources),
    }
    return [feature for feature, is_so in told.items() if is_so]
