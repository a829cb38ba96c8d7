"""Every strategy carries every query it accepts, at any step, by any options, amid anything, and no answer changes.

A drawn case is run by all strategies, several of them beside each other in one engine, each query migrated by one. What
a strategy refuses is no case. The tests after the first say that the cases were what they claim to be.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings

from midstream.migration.discovery import discovered
from midstream.migration.lasting import Lasting
from midstream.model.events import MigrationBegun, MigrationEnded, MigrationProgressed
from tests.conformance.cases import Drawn, beside, cases
from tests.conformance.course import Course
from tests.conformance.forms import FORMS, Rehearsal
from tests.conformance.trips import Trip, disturbances, strategies, trip
from tests.oracle.arrival import Lifetime
from tests.property.drive import Run

pytestmark = pytest.mark.property

LEAST = {"test": 300, "soak": 5000, "quick": 20}[os.environ.get("MIDSTREAM_PROFILE", "test")]
"""The cases that every strategy has at least; some draws are of queries that some strategies refuse."""

seen: dict[str, Counter[str]] = {}
"""For each strategy what its cases were like."""


@settings(
    max_examples=LEAST + LEAST // 10,
    derandomize=LEAST < 5000,
    database=None,
    deadline=None,
    # A course makes itself smaller, which is quicker than to draw everything again.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(cases())
def test_every_strategy(drawn: Drawn) -> None:
    rng = Random(drawn.seed)
    rehearsals = {name: Rehearsal(drawn.case.streams, drawn.spec(name)) for name in ("main", "plain")}
    names = rng.sample(strategies(), len(strategies()))
    while names:
        group = [names.pop() for _ in range(min(rng.choice((1, 2, 3, 4)), len(names)))]
        trips: dict[str, Trip] = {}
        asked: dict[str, str] = {}
        for name in group:
            for query, rehearsal in rehearsals.items():
                found = trip(rng, rehearsal, name, name, len(drawn.case.steps))
                if found:
                    trips[name], asked[name] = found, query
                    break
        check(rng, drawn, trips, asked)


def check(rng: Random, drawn: Drawn, trips: dict[str, Trip], asked: dict[str, str]) -> None:
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
        tell(name, one, found)


def tell(name: str, one: Trip, found: Run) -> None:
    """Note what a case was like."""
    told = seen.setdefault(name, Counter())
    if one.moves[0] in found.refused:
        told["refused"] += 1
        return
    events = [event for event in found.engine.events if getattr(event, "query", "") == name]
    told["cases"] += 1
    told["overlaps"] += len(one.moves) > 1
    told["moved"] += any(e.tasks for e in events if isinstance(e, MigrationBegun) and e.strategy == name)
    told["lasted"] += any(e.strategy == name for e in events if isinstance(e, MigrationProgressed))
    told["ended"] += any(e.strategy == name for e in events if isinstance(e, MigrationEnded))
    told["worked"] += any(e.strategy == name and e.comparisons for e in events if isinstance(e, MigrationEnded))
    told.update(f"{way} {form}" for way, form in zip(("from", "to"), one.forms, strict=True))
    told.update({f"with {option}" for move in one.moves for option in move.options if move.strategy == name})


def test_each_had_its_cases() -> None:
    assert seen.keys() == discovered().keys()
    assert not {name: told["cases"] for name, told in seen.items() if told["cases"] < LEAST}
    print(*(f"{name}: {dict(told)}" for name, told in seen.items()), sep="\n")


def test_they_really_migrated() -> None:
    """The test above would be green if nothing had to be carried."""
    for name, told in seen.items():
        if discovered()[name].options:
            assert told["ended"] > 0.3 * told["cases"], (name, told)
        if isinstance(discovered()[name], Lasting):
            assert told["lasted"] > 0.3 * told["cases"], (name, told)


def test_from_and_to_every_form() -> None:
    for name, told in seen.items():
        assert all(told[f"from {form}"] for form in FORMS), (name, told)
