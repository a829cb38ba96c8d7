"""What Wang's operators do for a workload, from what the engine counted: the terms of Equations 4.1, 4.2 and 5.1.

The engine works in sets: it unites without a union and purges by chunks. Here its exact counters are read as the
dissertation's operators would have counted, one comparison each: a row purges the state on the other side of each join
it enters; a result is held against every window of a router but the widest, and against the filter of each query that
takes it; a union by punctuation pays per row. Queries are as in `Setting`: `filtered` of them have the filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from midstream.lab.costs.cost_terms import Cost
from midstream.lab.wang_engine import Tally
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.sharing.recut import MEASURED


def pull_up(run: Tally, filtered: int) -> Cost:
    """Price one join, a router, and filters behind it (Equation 4.1)."""
    windows = run.found * len(run.delivered)
    return _cost(
        run,
        probe=run.probed,
        purge=run.entered,
        # The engine's router holds each result against the widest window, too, which decides nothing.
        route=windows - run.found,
        filter=run.decided - windows if filtered else 0,
    )


def push_down(run: Tally, filtered: int) -> Cost:
    """Price a split, a join for each part, a router behind the wide one, a union for Q_1 (Equation 4.2)."""
    return _cost(
        run,
        split=run.tested,
        probe=run.probed,
        purge=run.entered,
        route=run.decided - run.found,
        union=run.delivered[0] if filtered else 0,
    )


def mem_opt(run: Tally, filtered: int) -> Cost:
    """Price a slice per query, a filter behind the first, a union by punctuation per later query (Equation 5.1).

    Of A only the rows that pass enter the slices behind the filter, where Equation 5.1 has all of them purge.
    """
    later = len(run.delivered) - 1
    rows = sum(run.rows.values())
    return _cost(
        run,
        probe=run.probed,
        purge=rows + later * (run.passing + run.rows["B"]),
        union=later * rows,
        filter=run.tested + run.delivered[0] * filtered,
    )


def chain(run: Tally, cuts: Sequence[int], c_sys: float) -> Cost:
    """Price slices that end with the windows of these numbers, counted from 1; no filters (§7.2, Fig. 7.2).

    A row pays C_sys in each slice. A merged slice has a router over the windows inside it; the queries that end in the
    first slice need no union.
    """
    within = (0, *run.delivered)
    rows = sum(run.rows.values())
    return _cost(
        run,
        probe=run.probed,
        purge=rows * len(cuts),
        system=rows * len(cuts) * c_sys,
        route=sum((within[end] - within[begin]) * (end - begin - 1) for begin, end in pairwise((0, *cuts))),
        union=rows * (len(run.delivered) - cuts[0]),
    )


def engine_work(run: Tally) -> float:
    """Price what the engine itself counted, in seconds, by the costs that its mode cpu_opt weighs chains with."""
    return (
        JoinUnitCosts().comparison * 1e-9 * run.probed
        + MEASURED.purge * run.moved
        + MEASURED.route * run.decided
        + MEASURED.boundary * run.boundaries
    )


def _cost(run: Tally, **cpu: float) -> Cost:
    return Cost(memory={"state": run.state_rows}, cpu=cpu)
