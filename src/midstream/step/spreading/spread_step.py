"""One step of a query that is spread over nodes, one node after the other in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from midstream.model.errors import fault_located
from midstream.model.ids import LaneId
from midstream.model.manifest import Manifest
from midstream.model.node_spread import NodeSpread
from midstream.ring.deploy import without_run_out
from midstream.ring.ring_course import RingCourse
from midstream.runtime.dead_letters import together
from midstream.runtime.watermark import StepClock
from midstream.state.chunk_store import ChunkStore
from midstream.step.plan_step import StepPlan
from midstream.step.spreading.arrivals import StepArrivals
from midstream.step.spreading.deployed import Deployed, begun_spread, bound_of, step_spread
from midstream.step.spreading.node_orders import counts_by_node
from midstream.step.spreading.nodes_done import NodesDone, SpreadOutput, spread_output
from midstream.step.spreading.partition import Partition, answers_of, listed, moment_before, read, visited
from midstream.step.spreading.taken_over import Former, former, former_of_ring
from midstream.units.query_unit import QueryUnit
from midstream.units.ring_unit import RingUnit


def spread_step(
    before: Manifest, plan: StepPlan, name: str, rows: Mapping[str, pa.RecordBatch], clock: StepClock, store: ChunkStore
) -> SpreadOutput:
    """Do a step of a query that is spread over nodes; `before` is the manifest that the step began from.

    Rows go to the nodes where they are at home, partial results visit nodes hop by hop. The nodes are the lanes of
    the query's group; only base rows are kept, listed at the nodes.
    """
    unit = spread_unit(plan, name)
    with fault_located(unit.place):
        left = left_elsewhere(before, plan, name, store)
        return _spread_step(plan.manifest, unit, plan.spread_queries[name], rows, clock, store, left)


def spread_unit(plan: StepPlan, name: str) -> QueryUnit:
    """Return the unit of a query that is spread over nodes, with those that share them."""
    (unit,) = plan.program(plan.manifest.queries[name].group).units
    assert isinstance(unit, QueryUnit)
    return unit


def left_elsewhere(before: Manifest, plan: StepPlan, name: str, store: ChunkStore) -> Former | None:
    """Return what a query leaves elsewhere where all its rows are spread so from this step on; else None."""
    unit, step = spread_unit(plan, name), plan.manifest.step
    spread = plan.spread_queries[name]
    if spread.since != step or spread.before is not None:
        return None
    if isinstance(unit, RingUnit):
        return former_of_ring(before, plan.manifest, unit, store)
    return former(before, name, unit, store, f"{LaneId(unit.group, 0)}/{step:08d}-taken")


def _spread_step(
    manifest: Manifest,
    unit: QueryUnit,
    spread: NodeSpread,
    rows: Mapping[str, pa.RecordBatch],
    clock: StepClock,
    store: ChunkStore,
    left: Former | None,
) -> SpreadOutput:
    bound = bound_of(unit, clock)
    spread = without_run_out(unit.query, spread, bound)
    arrivals = StepArrivals.selected(unit, rows, clock.step)
    if left is None:
        chunks = {label: read(listed(manifest, unit, label), manifest, unit, label, store) for label in arrivals.rows}
    else:
        chunks, spread = dict(left.chunks), begun_spread(unit, spread, left, bound)
    how = step_spread(unit, spread, arrivals.times, bound)
    deployed = Deployed(unit, how, manifest.seed, bound, counts_by_node(clock.step))
    new = {label: deployed.homes(label).groups(batch) for label, batch in arrivals.rows.items()}
    partition = Partition(deployed, range(how.spread.reach), chunks, new)
    nodes = partition.nodes()
    course = RingCourse(
        deployed.hops, [nodes[number] for number in partition.numbers],
        {label: batch.slice(0, 0) for label, batch in arrivals.rows.items()},
    )  # fmt: skip
    results = course.run({label: deployed.started(label, batch) for label, batch in arrivals.rows.items()})
    answers = answers_of(unit, results, [] if left is None else [table for _, table in left.held])
    if arrivals.rejected is not None:
        (name,) = unit.queries
        answers[name] = replace(answers[name], dead=together(arrivals.rejected, answers[name].dead))
    done = partition.kept(store, clock.step, moment_before(deployed, spread, clock.step)) + NodesDone(
        tuple(visited(node) for node in nodes.values()),
        counters=arrivals.counters,
        sent=tuple(course.sent),
        bytes=tuple(course.bytes),
        routes=deployed.hops.worked(nodes.values()),
        rows_out={query: len(answer.times) for query, answer in answers.items()},
        rejected={query: answer.dead.num_rows for query, answer in answers.items() if answer.dead is not None},
        spread=how.spread,
    )
    output = spread_output(manifest, unit, spread, done)
    first = LaneId(unit.group, 0)
    with_answer = replace(output.lanes[first], results=answers)
    return replace(output, lanes={**output.lanes, first: with_answer})
