"""How often a plan is reviewed: a review that takes long is paid for by the work of the queries it looks at.

Work and prices are foreseen in nanoseconds, from counters: what is reviewed must not depend on a clock.
"""

from __future__ import annotations

from midstream.language.parse import parsed
from midstream.model.counters import Counters
from midstream.model.manifest import Manifest
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.samples.reading import BUDGET
from midstream.step.reviewing.plan_group import PlanGroup

SHORT = 10_000_000.0
"""A review that takes no longer than this, in nanoseconds, is never put off."""

UNITS = JoinUnitCosts()

ANY_STEP = 5_000_000.0
"""What a step of a query takes, however few its rows are."""


def price(streams: int, rows: float) -> float:
    """What a review of a join of so many streams takes whose sources have so many rows alive.

    All of these are looked at by their hashes, the sampled ones are joined, and each set of streams is weighed.

    >>> [round(price(streams, rows) / 1e6, 1) for streams, rows in [(3, 1_000), (3, 180_000), (10, 1_000)]]
    [5.5, 21.3, 66.5]
    """
    return 4_000_000.0 + 60_000.0 * (1 << streams) + 1_000.0 * min(rows, streams * BUDGET) + 25.0 * rows


def work(manifest: Manifest, one: PlanGroup) -> float:
    """What queries that run by one plan have done since they began."""
    entries = [manifest.queries[name] for name in one.queries]
    done = Counters.sum(entry.counters for entry in entries)
    joins = len(parsed(manifest, entries[0].sql).sources) - 1
    steps = max(manifest.step - entry.since for entry in entries)
    joined = UNITS.joining(done.rows_in, done.comparisons, done.rows_out)
    return joined + UNITS.insert * done.inserted + steps * (ANY_STEP + joins * UNITS.operator_step)


def is_paid_for(manifest: Manifest, one: PlanGroup) -> bool:
    """Whether the work since the last review is worth another one: it takes at most the share that is allowed.

    The price is the last one's: nothing but a look at the plan itself would tell today's.
    """
    if one.kept.price <= SHORT:
        return True
    done = work(manifest, one) - one.kept.work
    # Counters begin anew when a query is changed.
    return done < 0 or one.kept.price <= one.settings.effort * done
