"""Draw cases and put every strategy through each: `python -m tests.conformance.suite SEED COUNT` is one share of it.

A drawn case is run by all strategies, several of them beside each other in one engine, each query migrated by one. What
a strategy refuses is no case.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, Phase, given, note, seed, settings

from midstream.model.events import Event, MigrationBegun, MigrationEnded, MigrationProgressed
from midstream.units.choose import AUTO
from tests.conformance.cases import Drawn, beside, cases
from tests.conformance.changes import can_change, through_changes
from tests.conformance.course import Course
from tests.conformance.forms import Rehearsal
from tests.conformance.trips import Trip, disturbances, strategies, trip
from tests.garbage import look_seldom
from tests.oracle.arrival import Lifetime
from tests.property.drive import Run

Seen = dict[str, Counter[str]]
"""For each strategy how many cases it had, and what they were like."""

CHANGING = 0.4
"""The share of the groups that are carried once more while their queries change."""


def share(number: int, count: int) -> Seen:
    """Run so many draws; equal numbers draw equal cases."""
    seen: Seen = {}

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        # A course makes itself smaller, which is quicker than to draw everything again.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def run(drawn: Drawn) -> None:
        through_all(drawn, lambda strategy, features: seen.setdefault(strategy, Counter()).update(features))

    run()
    return seen


def through_all(drawn: Drawn, tell: Callable[[str, list[str]], None]) -> None:
    """Put all strategies through a case, and tell of each what its case was like."""
    rng, other = Random(drawn.seed), Random(f"changes {drawn.seed}")
    rehearsals = {name: Rehearsal(drawn.case.streams, drawn.spec(name)) for name in ("main", "plain")}
    names = rng.sample(strategies(), len(strategies()))
    while names:
        group = [names.pop() for _ in range(min(rng.choice((2, 3, 4, 5)), len(names)))]
        trips: dict[str, Trip] = {}
        asked: dict[str, str] = {}
        for name in group:
            for query, rehearsal in rehearsals.items():
                found = trip(rng, rehearsal, name, name, len(drawn.case.steps))
                if found:
                    trips[name], asked[name] = found, query
                    break
        through(rng, drawn, trips, asked, tell)
        mains = {name: one for name, one in trips.items() if asked[name] == "main"}
        if mains and can_change(drawn.spec("main")) and other.random() < CHANGING:
            through_changes(other, drawn, mains, tell)


def through(
    rng: Random, drawn: Drawn, trips: dict[str, Trip], asked: dict[str, str], tell: Callable[[str, list[str]], None]
) -> None:
    """Run some trips beside each other in one engine, perhaps with a twin that does not migrate."""
    lives = [Lifetime(name, drawn.spec(query)) for name, query in asked.items()]
    twin = next(life for life in drawn.case.queries if life.name == "twin")
    course = Course(
        beside(drawn.case, *lives, *([twin] if rng.random() < 0.4 else [])),
        {name: one.first for name, one in trips.items()},
        (*disturbances(rng, len(drawn.case.steps)), *(move for one in trips.values() for move in one.moves)),
        rng.choice((1, 1, 1, 2)),
        rng.choice(("auto", "off")),
    )
    expected = {name: drawn.expected[query] for name, query in {**asked, "twin": "twin"}.items()}
    try:
        found = course.check(expected)
    except Exception:
        note(course.reduced().told())
        raise
    for name, one in trips.items():
        if one.moves[0] not in found.refused:
            tell(name, features(name, one, found))


def features(name: str, one: Trip, found: Run) -> list[str]:
    """What a case was like."""
    events = [e for e in found.engine.events if getattr(e, "query", "") == name]

    def happened(kind: type[Event], which: Callable[[Event], object] = lambda event: True) -> bool:
        return any(which(e) for e in events if isinstance(e, kind) and name in (AUTO, getattr(e, "strategy", "")))

    told = {
        "cases": True,
        "overlapping": len(one.moves) > 1,
        "moved": happened(MigrationBegun, lambda e: getattr(e, "tasks", ())),
        "lasted": happened(MigrationProgressed),
        "ended": happened(MigrationEnded),
        "compared": happened(MigrationEnded, lambda e: getattr(e, "comparisons", 0)),
        "worked": happened(MigrationProgressed) or happened(MigrationEnded, lambda e: getattr(e, "comparisons", 0)),
        f"from {one.forms[0]}": True,
        f"to {one.forms[1]}": True,
    }
    options = {f"with {option}" for move in one.moves for option in move.options if move.strategy == name}
    return [feature for feature, is_so in told.items() if is_so] + sorted(options)


if __name__ == "__main__":
    look_seldom()
    print(json.dumps(share(int(sys.argv[1]), int(sys.argv[2]))))
