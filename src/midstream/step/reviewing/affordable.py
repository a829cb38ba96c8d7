"""How often a plan is reviewed: a review that takes long is paid for by the work of the queries it looks at.

Work and prices are foreseen in nanoseconds, from counters: what is reviewed must not depend on a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from midstream.language.parse import parsed
from midstream.model.counters import Counters
from midstream.model.manifest import Manifest
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.samples.reading import BUDGET
from midstream.optimizer.search.bushy import MOST_SOURCES
from midstream.step.reviewing.plan_group import PlanGroup

SHORT = 10_000_000.0
"""A review that takes no longer than this, in nanoseconds, waits for its turn alone; so much is done in any step."""

RESTING = 3.0
"""A plan that is settled is reviewed, though nothing moves, once the work is worth so many reviews."""

SAVED = 4.0
"""So many reviews can be saved up for when streams move."""

UNITS = JoinUnitCosts()

ANY_STEP = 5_000_000.0
"""What a step of a query takes, however few its rows are."""


def subsets(streams: int) -> int:
    """So many sets of streams are weighed; beyond `MOST_SOURCES`, the greedy search takes as long as so many would.

    >>> [subsets(streams) for streams in (3, 12, 14)]
    [8, 4096, 2744]
    """
    return 1 << streams if streams <= MOST_SOURCES else streams**3


def price(streams: int, rows: float) -> float:
    """What a review of a join of so many streams takes whose sources have so many rows alive.

    All of these are looked at by their hashes, the sampled ones are joined, and each set of streams is weighed.

    >>> [round(price(streams, rows) / 1e6, 1) for streams, rows in [(3, 1_000), (3, 180_000), (10, 1_000)]]
    [5.5, 21.3, 66.5]
    """
    return 4_000_000.0 + 60_000.0 * subsets(streams) + 1_000.0 * min(rows, streams * BUDGET) + 25.0 * rows


def work(manifest: Manifest, one: PlanGroup) -> float:
    """What queries that run by one plan have done since they began: each has the whole chain's work booked to it."""
    entries = [manifest.queries[name] for name in one.queries]
    joins = len(parsed(manifest, entries[0].sql).sources) - 1
    steps = max(manifest.step - entry.since for entry in entries)
    done = max(_joined(entry.counters) for entry in entries)
    return done + steps * (ANY_STEP + joins * UNITS.operator_step)


def _joined(done: Counters) -> float:
    return UNITS.joining(done.rows_in, done.comparisons, done.rows_out) + UNITS.insert * done.inserted


def is_affordable(manifest: Manifest, one: PlanGroup) -> bool:
    """Whether a review is short, or the work since the last one is worth another; of a settled plan, worth several."""
    if one.kept.settled:
        return is_paid_for(manifest, one, RESTING)
    return one.kept.price <= SHORT or is_paid_for(manifest, one)


def is_paid_for(manifest: Manifest, one: PlanGroup, times: float = 1.0) -> bool:
    """Whether the work since the last review is worth so many: they take at most the share that is allowed.

    The price is the last one's: nothing but a look at the plan itself would tell today's.
    """
    done = work(manifest, one) - one.kept.work
    # It is less than before where the query that had done most has left its chain.
    return done < 0 or times * one.kept.price <= one.settings.effort * done


def is_saved_for(manifest: Manifest, one: PlanGroup) -> bool:
    """Whether a review of a settled plan whose streams have moved is short, or anything is saved up for it."""
    return one.kept.price <= SHORT or savings(manifest, one) > 0


def savings(manifest: Manifest, one: PlanGroup) -> float:
    """What may be spent on reviews, in nanoseconds: the share of all work that is allowed, less what was spent."""
    return one.kept.saved + one.settings.effort * max(work(manifest, one) - one.kept.work, 0.0)


def saved_after(manifest: Manifest, one: PlanGroup, price: float, *, worthwhile: bool) -> float:
    """What is left after a review of this price: of what there was, no more than some reviews take.

    As much is there at first, and after a `worthwhile` review: one that has led to a switch is paid for by what that
    saves.
    """
    had = savings(manifest, one) if one.kept.decision and not worthwhile else inf
    return min(had, SAVED * price) - price


def allowance(efforts: Iterable[float]) -> float:
    """What the reviews of a step may take together, in nanoseconds, that are not paid for by their own queries' work.

    The job's step as a whole pays for them, as far as it is foreseen however few its rows are.
    """
    return max(SHORT, ANY_STEP * sum(efforts))
