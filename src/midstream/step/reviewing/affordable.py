"""How often a plan is reviewed: a review that takes long is paid for by the work of the queries it looks at.

Work and prices are foreseen in nanoseconds, from counters: what is reviewed must not depend on a clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from midstream.language.parse import parsed
from midstream.model.counters import Counters
from midstream.model.manifest import Manifest
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.samples.reading import BUDGET
from midstream.optimizer.search.bushy import MOST_SOURCES
from midstream.step.reviewing.plan_group import PlanGroup

SHORT = 10_000_000.0
"""A review that takes no longer than this, in nanoseconds, waits for its turn alone; so much is done in any step."""

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
    """Whether a review is short, or the work since the last one is worth another."""
    return one.kept.price <= SHORT or is_paid_for(manifest, one)


def is_paid_for(manifest: Manifest, one: PlanGroup) -> bool:
    """Whether the work since the last review is worth another one: it takes at most the share that is allowed.

    The price is the last one's: nothing but a look at the plan itself would tell today's.
    """
    done = work(manifest, one) - one.kept.work
    # It is less than before where the query that had done most has left its chain.
    return done < 0 or one.kept.price <= one.settings.effort * done


def allowance(groups: Iterable[PlanGroup]) -> float:
    """What the reviews of a step may take together, in nanoseconds, that are not paid for by their own queries' work.

    The job's step as a whole pays for them, as far as it is foreseen however few its rows are.
    """
    return max(SHORT, sum(one.settings.effort * ANY_STEP for one in groups))
