"""What reviews and usual steps take: foreseen in nanoseconds from counters, because no clock may decide."""

from __future__ import annotations

from midstream.logical.query import query_of
from midstream.model.counters import Counters
from midstream.model.manifest import Manifest
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.samples.sample_reading import BUDGET
from midstream.optimizer.search.bushy import FEW_SOURCES, MOST_SOURCES
from midstream.proposals.plan_group import PlanGroup, groups_with_choice
from midstream.units.arrangement import known_arrangement

UNITS = JoinUnitCosts()
ANY_STEP = 1_500_000.0  # ns of a step, however few its rows are
SHORT = 5_000_000.0  # ns that reviews may add to a step beyond a usual step's work
TREE = 500_000.0  # ns for a tree that a search weighs, with the joins of samples that are new in it
READ = 80.0  # ns for a row that is read: 13 to 18, times 5, for work with many results is counted at 5 times its time


def price(streams: int, rows: float, *, sliced: bool = False) -> float:
    """Foresee what a review takes, in nanoseconds, where the sources have so many rows alive together.

    Of a join of many sources, and of one whose search is `sliced`, that is what the step takes which decides.

    >>> [round(price(streams, rows) / 1e6, 1) for streams, rows in [(3, 1_000), (3, 180_000), (10, 1_000), (21, 1_000)]]
    [4.2, 19.7, 42.2, 18.9]
    """
    if sliced or streams > MOST_SOURCES:
        plans = 3_000_000.0 + 750_000.0 * streams
    else:
        plans = 250_000.0 * streams**2 + 1_700_000.0 + 15_000.0 * (1 << streams)
    return plans + 100.0 * min(rows, streams * BUDGET) + READ * rows


def slice_price(streams: int) -> float:
    """Foresee what one step of a search in slices takes, in nanoseconds, except for the trees that are weighed."""
    return 2_000_000.0 + 270_000.0 * streams


def trees_at_once(manifest: Manifest, one: PlanGroup, *, in_a_hurry: bool = False) -> int | None:
    """Return how many trees over many sources a review may weigh in one step, at least one. None: it weighs all.

    It weighs all of some sources where a usual step takes as long as that; of few ones it does in a hurry, too.
    """
    streams, most = len(query_of(manifest.queries[one.lead]).sources), usual_step(manifest) + SHORT
    if (streams <= FEW_SOURCES and in_a_hurry) or (streams <= MOST_SOURCES and price(streams, 0.0) <= most):
        return None
    return max(int((most - slice_price(streams)) / TREE), 1)


def usual_step(manifest: Manifest) -> float:
    """Return what a step of the job takes on average, in nanoseconds, foreseen from its counters."""
    return worked(manifest.totals) / max(manifest.step, 1) + any_step(manifest)


def any_step(manifest: Manifest) -> float:
    """Return what a step of the job takes at least, in nanoseconds, however few its rows are."""
    known = known_arrangement(manifest)
    joined = [] if known is None else known.joined
    if not joined:
        queries = [manifest.queries[names[0]] for names in groups_with_choice(manifest)]
        joined.append(sum(len(query_of(entry).sources) - 1 for entry in queries))
    return ANY_STEP + joined[0] * UNITS.operator_step


def worked(done: Counters) -> float:
    """Return what joins took to count so much, in nanoseconds."""
    return UNITS.joining(done.rows_in, done.comparisons, done.rows_out) + UNITS.insert * done.inserted
