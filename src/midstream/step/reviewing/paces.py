"""The pace of a plan: what it does in a second, as it is counted anyway, and what of that tells of another best plan.

All plans of a query take in the same rows and give out the same results: what sets them apart are the rows that their
inner joins make (the cost function of Cluet and Moerkotte, ICDT 1995). So these are looked at join by join: where one
makes more and another less, the sum may stay as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from midstream.model.counters import Counters
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization
from midstream.model.window import SECOND
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.step.unit import Unit

MOVED = 0.5
"""OM's threshold: by a greater share of the greater one two paces differ."""

CHANCE = 3.0
"""So many standard deviations of what is counted are left to chance."""

MATTERS = 0.2
"""A join's rows matter where what they differ by is such a share of the work: few combinations of many rows vary."""

LITTLE = 0.05
"""So much more of the work may be done than when a plan was found to be the best one, before anything is lost by it."""

TOTALS = 3
"""Rows that came in, comparisons, and results come before what each inner join has made."""

UNITS = JoinUnitCosts()

MADE = UNITS.comparison + UNITS.result + UNITS.insert + UNITS.probe
"""What a row takes that an inner join makes: it is found, made and kept, and looks for partners in the next join."""

Pace = tuple[float, ...]
"""In a second of event time: rows that came in, comparisons, results, and the rows that each inner join has made."""


@dataclass(frozen=True)
class Done:
    """What a query has done since it began: in all, and the rows that each inner join of its plan has made.

    `joins`: by which counters these are known.
    """

    counted: Counters
    joins: tuple[tuple[CounterKey, ...], ...] = ()
    made: tuple[int, ...] = ()

    @staticmethod
    def of(manifest: Manifest, name: str, joins: tuple[tuple[CounterKey, ...], ...]) -> Done:
        """What a query has done whose plan has these inner joins."""
        found = manifest.operators
        made = [sum([found[key].rows_out for key in of_join if key in found]) for of_join in joins]
        return Done(manifest.queries[name].counters, joins, tuple(made))


def inner_joins(unit: Unit) -> tuple[tuple[CounterKey, ...], ...]:
    """The counters of each inner join of the plan that a unit runs by, children first."""
    counted = unit.box(unit.plan).inner_joins
    return tuple(tuple([CounterKey(unit.group, one) for one in of_join]) for of_join in counted)


def pace_of(kept: Optimization, done: Done, now: int) -> Pace | None:
    """What was done in a second since the last look; None where that was no time, or counting began anew.

    What inner joins did is told where they are the same ones as then.
    """
    before, begun, counted = kept.counted, kept.seen, done.counted
    if begun is None or now <= begun or counted.rows_in < before.rows_in:
        return None
    totals = (
        counted.rows_in - before.rows_in, counted.comparisons - before.comparisons, counted.rows_out - before.rows_out,
    )  # fmt: skip
    made = [after - had for had, after in zip(kept.made, done.made, strict=False)]
    if len(kept.made) != len(done.made) or any(one < 0 for one in made):
        made = []
    seconds = (now - begun) / SECOND
    return tuple(one / seconds for one in (*totals, *made))


def work_of(pace: Pace) -> float:
    """The nanoseconds of work in a second."""
    rows_in, comparisons, results = pace[:TOTALS]
    return UNITS.joining(rows_in, comparisons, results) + UNITS.insert * rows_in + MADE * sum(pace[TOTALS:])


def has_moved(before: Pace, pace: Pace, seconds: float) -> bool:
    """Whether what was counted in so many seconds differs by more than the threshold and chance.

    What only one of them tells of is not compared: what inner joins made is known only where they are the same ones.

    >>> has_moved((100, 1000, 50), (100, 1200, 50), 10), has_moved((100, 1000, 50), (100, 3000, 50), 10)
    (False, True)
    >>> few, many = 100, 1000
    >>> has_moved((100, 1100, 50, few, many), (100, 1100, 50, many, few), 10)
    True
    """
    figures = list(zip(before, pace, strict=False))
    if any(_differ(one * seconds, other * seconds) for one, other in figures[:TOTALS]):
        return True
    matters = MATTERS * max(work_of(before), work_of(pace)) / MADE
    return any(
        abs(one - other) > matters and _differ(one * seconds, other * seconds) for one, other in figures[TOTALS:]
    )


def lost(before: Pace, pace: Pace, ahead: float) -> float:
    """What is lost in a second, as far as it is seen, by a plan that was `ahead` of the best other one by so much.

    It does more in vain than then; that the other plan does as it did is all that is known. Less than nothing where it
    is still ahead.

    >>> lost((100, 1000, 50, 10), (100, 1000, 50, 1000), ahead=1e5) > 0
    True
    >>> lost((100, 1000, 50, 10), (100, 1000, 50, 1000), ahead=1e6) > 0
    False
    """
    more = sum(pace[TOTALS:]) - sum(before[TOTALS:])
    return MADE * more - max(ahead, 0.0) - LITTLE * work_of(before)


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > MOVED * (most := max(one, other)) + CHANCE * sqrt(most)
