"""What runs in a Python worker in the stages after the first, where queries are spread over nodes: one hop each."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from midstream.checkpoint.folders import REJECTED
from midstream.model.codec import encode
from midstream.model.errors import MidstreamError, fault_located
from midstream.model.ids import LaneId
from midstream.model.manifest import LaneState, StateListing
from midstream.pipeline.lane_task import failure
from midstream.pipeline.outputs import RESULTS, JobOutput
from midstream.pipeline.staged_files import FILES_AT_ONCE, StagedFiles
from midstream.ring.columns import Visits
from midstream.ring.joined_rows import JoinedRows, concatenated
from midstream.ring.ring_course import nothing_joined
from midstream.ring.ring_node import RingNode
from midstream.runtime.result_operator import Answer
from midstream.spark.kept_rows import KeptRows, kept_answers
from midstream.spark.parcel import (
    STOP,
    Parcel,
    addressed,
    in_order,
    place_of_task,
    reported,
    stopped,
    unpacked,
    unpacked_visits,
    unpacked_words,
)
from midstream.spark.spread_part import ARRIVALS, FIRST_HOP, PLACING, ROWS, SPREAD, TIMES, VISITS, SpreadPart
from midstream.spark.task import TOGETHER, StepTask
from midstream.state.chunk_store import Chunk
from midstream.state.rows import united
from midstream.step.lane_report import encode_lanes
from midstream.step.spreading.arrivals import no_rows
from midstream.step.spreading.deployed import Deployed, bound_of, step_spread
from midstream.step.spreading.listed import Groups, Nodes
from midstream.step.spreading.nodes_done import NodesDone
from midstream.step.spreading.partition import Partition, answers_of, moment_before, read, visited
from midstream.step.spreading.spread_step import spread_unit
from midstream.storage.chunk_cache import ChunkCache
from midstream.storage.transfers import threads
from midstream.storage.unsynced import Unsynced
from midstream.storage.write_back import WriteBackStore
from midstream.units.query_unit import join_of


class Coming(NamedTuple):
    """Partial results of a way, by its number, that come to a node at a hop, and their visits."""

    way: int
    node: int
    joined: JoinedRows
    visits: Visits


class Met(NamedTuple):
    """Results of the partial results that came to a node, and the way by which the results go on."""

    way: int
    node: int
    pieces: list[JoinedRows]


@dataclass(frozen=True)
class NodeTask:
    """A stage of a step: the nodes of a partition are visited, one after the other; called with parcels, gives parcels.

    What a task reports goes along to the end, because the job has one result. A node's state is chunks in the store, so
    that it matters nowhere where a stage runs, or how often.
    """

    step: StepTask
    stage: int

    def addressed(self, brought: Iterable[tuple[int, Parcel]]) -> list[tuple[int, Parcel]]:
        """Return the partition's parcels, each with the partition that it goes to."""
        partition, again = place_of_task()
        task = replace(self, step=self.step.opened(partition))
        sent = task.parcels(partition, in_order(parcel for _, parcel in brought), again)
        return addressed(sent, partition, self.stage + 1, self.step.partitions, self.step.parcel_files)

    def parcels(self, partition: int, parcels: Sequence[Parcel], again: bool) -> list[Parcel]:
        """Do the work of a partition with these parcels, and return its parcels for later stages.

        `again` says that it had been begun before.
        """
        sent = [parcel for parcel in parcels if parcel.stage > self.stage]
        mine = [parcel for parcel in parcels if parcel.stage <= self.stage]
        if any(parcel.kind == STOP for parcel in parcels):
            return [*sent, Parcel(partition, self.stage + 1, STOP)]
        work = _Work(self, partition)
        try:
            with fault_located(lambda: f"partition {partition}"):
                self.step.predicates.take_up()
                mine = self.step.parcel_files.read(mine) if self.step.parcel_files else mine
                found = [one for part in self.step.spreads for one in work.do(part, _of(part, mine))]
            report = {**work.report(), "again": again}
        except MidstreamError as error:
            report, found = failure(error), stopped(self.step.partitions, self.stage + 1)
        return [*sent, *found, reported(partition, report)]


def _of(part: SpreadPart, parcels: Sequence[Parcel]) -> list[Parcel]:
    return [parcel for parcel in parcels if parcel.query == part.name]


class _Work:
    """What a partition does in a stage."""

    def __init__(self, task: NodeTask, partition: int) -> None:
        self._task, self._step, self._partition = task, task.step, partition
        self._unsynced = Unsynced()
        self._files = StagedFiles(task.step.writes.staging, secrets.token_hex(4), self._unsynced)
        self._store = WriteBackStore(self._step.writes.store.synced_with(self._unsynced), small=TOGETHER)
        self._used_before = ChunkCache.here().use
        self._done: dict[str, Any] = {}
        self._kept = list[KeptRows]()

    def do(self, part: SpreadPart, parcels: Sequence[Parcel]) -> list[Parcel]:
        """Do what is to be done for a query, and return what is sent on."""
        if self._task.stage == PLACING:
            return self._place(part, parcels) if part.is_placed else []
        if self._task.stage > part.last:
            return []
        return self._hop(part, self._task.stage - FIRST_HOP, parcels)

    def report(self) -> dict[str, Any]:
        """Report the partition's stage, once all that it has written is on the disk."""
        self._store.files.finish()
        files, nodes = self._files.finish(), self._done
        self._unsynced.sync(threads(FILES_AT_ONCE).map)
        cache = list(ChunkCache.here().use.since(self._used_before))
        kept = [encode(one) for one in self._kept]
        return {
            "lanes": encode_lanes({}),
            "files": files,
            "seen": {},
            "entered": [],
            "nodes": nodes,
            "cache": cache,
            "kept": kept,
        }

    def _place(self, part: SpreadPart, parcels: Sequence[Parcel]) -> list[Parcel]:
        # The partition finds how the query is spread in this step, and sends its rows home.
        step, unit = self._step, spread_unit(self._step.plan, part.name)
        labels = [route.source.spec.label for route in join_of(unit).routes]
        times = {
            label: np.concatenate([
                np.zeros(0, np.int64),
                *(unpacked_words(one.body) for one in parcels if one.kind == TIMES and one.words == (label,)),
            ])
            for label in labels
        }  # fmt: skip
        how = step_spread(unit, part.spread, times, bound_of(unit, step.clock))
        deployed = Deployed(unit, how, step.plan.manifest.seed, bound_of(unit, step.clock))
        step.writes.crash.reach("amid_placing", step.clock.step)
        self._done[part.name] = encode(NodesDone(spread=how.spread))
        sent = [Parcel(self._partition, FIRST_HOP, SPREAD, part.name, (encode(how),))]
        for one in parcels:
            if one.kind == ARRIVALS:
                sent += part.placed(deployed, {one.words[0]: unpacked(one.body)}, step.partitions)
        return sent

    def _hop(self, part: SpreadPart, hop: int, parcels: Sequence[Parcel]) -> list[Parcel]:
        step = self._step
        deployed = part.deployed(step.plan, step.clock, parcels)
        visits = [parcel for parcel in parcels if parcel.kind == VISITS]
        partition = self._nodes(part, deployed, hop, parcels, visits)
        nodes, found = partition.nodes(), list[Met]()
        sent, size = [0] * hop, [0] * hop
        for at in part.hops_of(hop):
            coming = list(_unpacked(visits) if at == hop else _staying(deployed, at, _whole(found)))
            found = self._met(deployed, nodes, at, coming)
            sent.append(sum(len(one.visits) for one in coming))
            size.append(sum(one.joined.size(one.visits.partial) for one in coming))
            step.writes.crash.reach(f"amid_hop_{at + 1}", step.clock.step)
        routes = deployed.hops.worked(nodes.values())
        done = NodesDone(
            tuple(visited(node) for node in nodes.values()), sent=tuple(sent), bytes=tuple(size), routes=routes
        )
        if FIRST_HOP + hop == part.last:
            done += self._answer(part, deployed, partition, found)
            going: list[Parcel] = []
        else:
            going = [parcel.later(FIRST_HOP + hop + 1) for parcel in parcels if _goes_on(parcel, deployed, hop + 1)]
            for way, joined in _whole(found).items():
                going += part.sent(deployed, way, hop + 1, joined, step.partitions)
        if hop == 0:  # Results are being written by now.
            moment = moment_before(deployed, part.spread, step.clock.step)
            done += self._written(part, partition.kept(self._store, step.clock.step, moment))
        self._done[part.name] = encode(done)
        return going

    def _met(self, deployed: Deployed, nodes: Mapping[int, RingNode], hop: int, coming: Sequence[Coming]) -> list[Met]:
        # In the order in which they come.
        def at_node(number: int) -> list[tuple[int, Met]]:
            # Each with its place in the order.
            own = [(place, one) for place, one in enumerate(coming) if one.node == number]
            hops, node = deployed.hops, nodes[number]
            return [
                (place, Met(hops.after(one.way, hop, number), number,
                            hops.met(one.way, hop, node, one.joined, one.visits)))
                for place, one in own
            ]  # fmt: skip

        found = dict(one for own in map(at_node, sorted({one.node for one in coming})) for one in own)
        return [found[place] for place in range(len(coming))]

    def _nodes(
        self, part: SpreadPart, deployed: Deployed, hop: int, parcels: Sequence[Parcel], visits: Sequence[Parcel]
    ) -> Partition:
        # In the first hop with all that they keep, later with what is visited.
        step, hops = self._step, deployed.hops
        numbers = part.numbers(self._partition, step.partitions)
        labels = [route.source.spec.label for route in hops.routes]
        if hop:
            seen = {hops.label(parcel.words[0], hop) for parcel in visits}
            labels = [label for label in labels if label in seen]
        manifest, files = step.plan.manifest, self._store.files
        refs = {label: part.chunks(manifest, deployed, label, numbers) for label in labels}
        files.read_ahead(ref for own in refs.values() for ref in own)
        old = {label: read(own, manifest, deployed.unit, label, files) for label, own in refs.items()}
        return Partition(deployed, numbers, old, _new(parcels, labels))

    def _written(self, part: SpreadPart, done: NodesDone) -> NodesDone:
        # Small chunks go together into one file.
        lanes = {
            LaneId(part.name, n): LaneState({kept.state: StateListing(kept.chunks)}) for n, kept in enumerate(done.kept)
        }
        name = f"{self._step.clock.step:08d}-{part.name}{self._partition}.nodes-{self._files.token}"
        states = [next(iter(lane.states.values())) for lane in self._store.listed(lanes, name).values()]
        kept = (replace(one, chunks=state.chunks) for one, state in zip(done.kept, states, strict=True))
        return replace(done, kept=tuple(kept))

    def _answer(self, part: SpreadPart, deployed: Deployed, partition: Partition, results: Sequence[Met]) -> NodesDone:
        # With the first node goes what was held back.
        step, unit, numbers = self._step, deployed.unit, partition.numbers
        held = [self._store.files.get(ref) for ref in part.held] if 0 in numbers else []
        pieces = [piece for number in numbers for met in results if met.node == number for piece in met.pieces]
        if not pieces and not held:
            return NodesDone()
        empty = {label: no_rows(spec, step.plan.manifest) for label, spec in unit.binding.rows().items()}
        joined, done = concatenated(pieces) if pieces else nothing_joined(empty), NodesDone()
        for name, answer in answers_of(unit, joined, held).items():
            done += self._put(name, answer, deployed.lane(numbers[0]))
        return done

    def _put(self, query: str, answer: Answer, node: LaneId) -> NodesDone:
        # The answer is kept for the queries that read it, too.
        stem = str(node)
        if not self._step.plan.manifest.queries[query].part:
            self._files.put(JobOutput(RESULTS, query), stem, answer.table)
        self._kept += kept_answers(self._store.files, self._step.plan.manifest, node, query, answer)
        dead = {} if answer.dead is None else {query: answer.dead.num_rows}
        if answer.dead is not None:
            self._files.put(JobOutput(REJECTED, query), stem, answer.dead)
        return NodesDone(rows_out={query: len(answer.times)}, rejected=dead)


def _new(parcels: Sequence[Parcel], labels: Sequence[str]) -> dict[str, Groups]:
    # By source, rows of the same nodes together.
    found: dict[str, dict[Nodes, list[pa.RecordBatch]]] = {label: {} for label in labels}
    for parcel in parcels:
        if parcel.kind == ROWS and parcel.words[0] in found:
            label, nodes = parcel.words
            found[label].setdefault(tuple(nodes), []).append(unpacked(parcel.body))
    return {
        label: [(nodes, Chunk(united(batches, batches[0].schema.names))) for nodes, batches in sorted(groups.items())]
        for label, groups in found.items()
    }


def _unpacked(parcels: Sequence[Parcel]) -> Iterator[Coming]:
    for parcel in parcels:
        way, node, parts = parcel.words
        yield Coming(way, node, *unpacked_visits(parcel.body, node, parts))


def _staying(deployed: Deployed, hop: int, joined_by: Mapping[int, JoinedRows]) -> Iterator[Coming]:
    for way, joined in joined_by.items():
        yield from (Coming(way, node, joined, here) for node, here in deployed.hops.visits(way, hop, joined))


def _whole(found: Sequence[Met]) -> dict[int, JoinedRows]:
    # The last hop does without, because there the inputs are put together too.
    by_way: dict[int, list[JoinedRows]] = {}
    for met in found:
        by_way.setdefault(met.way, []).extend(met.pieces)
    return {way: concatenated(pieces) for way, pieces in by_way.items() if pieces}


def _goes_on(parcel: Parcel, deployed: Deployed, hop: int) -> bool:
    return parcel.kind == SPREAD or (parcel.kind == ROWS and deployed.hops.meets_new(parcel.words[0], hop))
