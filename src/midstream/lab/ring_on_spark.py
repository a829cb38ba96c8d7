"""Rings on real Spark by what their nodes count, and the virtual cluster over the same rows (Wang §16.2-16.5).

In: rows whose values decide which of them match, rings over them, and where steps end. Out: for each ring and step what
its nodes compared, held and were visited by, on Spark and on the virtual cluster, and the results of both.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.commands.spread import Spread
from midstream.lab.ring_cluster import (
    Adaptation,
    AdaptiveRing,
    DynamicRing,
    RingArrivals,
    RingCluster,
    RingCounts,
    Words,
)
from midstream.lab.ring_routed import LABELS, MICROSECONDS, RoutedCluster
from midstream.lab.ring_settings import WAYS, WINDOW, costs
from midstream.model.errors import MidstreamError
from midstream.model.events import CommandRefused
from midstream.model.extras import from_extra
from midstream.model.manifest import Manifest
from midstream.model.node_spread import NodeSpread
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import spreadings
from midstream.sinks import files

SPARK, CLUSTER = "Spark", "virtual cluster"

VALUES = 1_000_000
"""Values are below it; two of neighbouring streams match if the second is less than a share of it above the first."""

_COLUMNS = "ts TIMESTAMP_NTZ, n BIGINT, v BIGINT"
_SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("n", pa.int64()), ("v", pa.int64())])
_KEPT = 9
"""A job is started anew after so many steps, because a checkpoint keeps the manifests of the newest ten."""

Numbers = tuple[int, ...]
"""The row of each stream that a result has, by number."""


@dataclass(frozen=True)
class ValuedRows:
    """Rows of streams A, B, ...: event times in microseconds, ascending, and the values that their matches follow from.

    Streams are joined in a chain. Any share of pairs can be made to match, so one set of rows serves all selectivities.
    """

    times: tuple[Words, ...]
    values: tuple[Words, ...]

    @staticmethod
    def paced(ways: int, paces: Sequence[tuple[float, float]], seed: int) -> ValuedRows:
        """Draw Poisson arrivals: each pace is rows a second in each stream, and for how many seconds."""
        drawn = RingArrivals.paced(ways, paces, 0.0, seed).times
        rng = np.random.default_rng([seed, 1])
        return ValuedRows(
            tuple(np.round(times * MICROSECONDS).astype(np.int64) for times in drawn),
            tuple(rng.integers(0, VALUES, len(times)) for times in drawn),
        )

    def arrivals(self, ways: int, selectivity: float) -> RingArrivals:
        """Return the rows of the first streams as the virtual cluster takes them."""
        pairs = pairwise(self.values[:ways])
        matches = tuple((b[None, :] - a[:, None]) % VALUES < selectivity * VALUES for a, b in pairs)
        return RingArrivals(tuple(times / MICROSECONDS for times in self.times[:ways]), matches)

    def between(self, stream: int, begin: float, end: float) -> pa.Table:
        """Select a stream's rows of some seconds."""
        times = self.times[stream]
        low, high = np.searchsorted(times, [round(begin * MICROSECONDS), round(end * MICROSECONDS)]).tolist()
        return pa.table(
            [pa.array(times[low:high], pa.timestamp("us")), np.arange(low, high), self.values[stream][low:high]],
            schema=_SCHEMA,
        )

    def count(self, ways: int, begin: float, end: float) -> int:
        """Count the rows of the first streams in some seconds."""
        return sum(len(self.between(stream, begin, end)) for stream in range(ways))


@dataclass(frozen=True)
class SpreadRing:
    """A join of the first `ways` streams, spread over nodes; `options` are the scheme's on Spark.

    `adaptation` is what the virtual cluster adapts. The lengths that it chooses are given to Spark by commands.
    """

    scheme: str
    nodes: int
    selectivity: float
    join: str = "small join"
    ways: int = WAYS
    options: Mapping[str, Any] = field(default_factory=dict)
    adaptation: Adaptation | None = None

    @property
    def sql(self) -> str:
        """The query: each result has the numbers of its rows."""
        labels = LABELS[: self.ways]
        selected = ", ".join(f"{label}.n AS {label.lower()}" for label in labels)
        sources = ", ".join(f"{label} [RANGE {WINDOW:g} SECONDS]" for label in labels)
        limit = round(self.selectivity * VALUES)
        near = (f"({b}.v - {a}.v + {VALUES}) % {VALUES} < {limit}" for a, b in pairwise(labels))
        return f"SELECT {selected} FROM {sources} WHERE {' AND '.join(near)}"

    @property
    def plan(self) -> str:
        """The probing orders of the virtual cluster."""
        labels = LABELS[: self.ways]
        streams = range(self.ways)
        orders = ([*streams[start + 1 :], *streams[:start][::-1]] for start in streams)
        each = (f"{labels[start]}: {' '.join(labels[at] for at in order)}" for start, order in enumerate(orders))
        return f"[{' | '.join(each)}]"


@dataclass(frozen=True)
class StepCounts:
    """The work of a ring's nodes in a step: pairs compared by each, visits, rows held by each, rows that changed nodes.

    Of the virtual cluster `held` has all nodes' together, and `moved` is a step's share of the whole run's.
    """

    compared: tuple[int, ...]
    visits: int
    held: tuple[float, ...]
    moved: int


@dataclass(frozen=True)
class RingRun:
    """A ring's steps after the first, which fills the windows, and the results that these steps made."""

    steps: tuple[StepCounts, ...]
    results: frozenset[Numbers]


def session() -> Any:
    """Return the Spark session of this process, or start one, which ends with the process."""
    with from_extra("spark", "Spark"):
        from midstream.spark.session import local_session
    return local_session("midstream lab", settings={"spark.driver.memory": "2g"})


def on_spark(
    spark: Any,
    rows: ValuedRows,
    rings: Sequence[SpreadRing],
    ends: Sequence[float],
    lengths: Mapping[int, Sequence[int]],
) -> list[RingRun]:
    """Run the rings side by side in one job, whose steps end at these seconds; the first fills the windows.

    `lengths` has for a ring, by its place, the number of nodes of each step after the first.
    """
    with tempfile.TemporaryDirectory(prefix="midstream-lab-") as folder:
        job = _RingJob(spark, Path(folder), rows, rings)
        manifests = job.run(ends, lengths)
        return [job.found(place, manifests) for place in range(len(rings))]


@dataclass(frozen=True)
class _RingJob:
    spark: Any
    root: Path
    rows: ValuedRows
    rings: Sequence[SpreadRing]

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    def run(self, ends: Sequence[float], lengths: Mapping[int, Sequence[int]]) -> list[Manifest]:
        # The manifest after each step.
        changes = [self._changes(step, lengths) for step in range(len(ends))]
        found, waiting = list[Manifest](), 0
        for step, (begin, end) in enumerate(pairwise([0.0, *ends])):
            if changes[step] and waiting:
                found, waiting = found + self._started(waiting), 0
            for command in changes[step]:
                CommandLog(self.checkpoint / "commands").append(command)
            self._feed(step, begin, end)
            waiting += 1
            if waiting == _KEPT or step == len(ends) - 1:
                found, waiting = found + self._started(waiting), 0
        return found

    def _changes(self, step: int, lengths: Mapping[int, Sequence[int]]) -> list[Spread]:
        if not step:
            return []
        changed = []
        for place, nodes in lengths.items():
            ring, before = self.rings[place], nodes[step - 2] if step > 1 else self.rings[place].nodes
            if nodes[step - 1] != before:
                options = {**ring.options, "relocation": "aggressive"}
                changed.append(Spread(_name(place), ring.scheme, nodes[step - 1], options))
        return changed

    def _feed(self, step: int, begin: float, end: float) -> None:
        for stream in range(len(self.rows.times)):
            folder = self.root / "in" / LABELS[stream]
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{step:05d}.parquet"
            pq.write_table(self.rows.between(stream, begin, end), file)
            os.utime(file, (1_600_000_000 + step, 1_600_000_000 + step))  # Spark takes files by age.

    def _started(self, steps: int) -> list[Manifest]:
        from midstream.spark.job import Job

        job = Job(self.spark, self.checkpoint, 1, sharing="off", durable=False)
        for stream in range(len(self.rows.times)):
            reader = self.spark.readStream.schema(_COLUMNS).option("maxFilesPerTrigger", 1)
            job.stream(LABELS[stream], reader.parquet(str(self.root / "in" / LABELS[stream])), "ts")
        for place, ring in enumerate(self.rings):
            job.query(
                _name(place), ring.sql, ring.plan, files(self._answers(place)),
                spread=ring.scheme, nodes=ring.nodes, spread_options=ring.options,
            )  # fmt: skip
        run = job.start({"availableNow": True})
        run.await_termination()
        refused = [event for event in run.events if isinstance(event, CommandRefused)]
        if refused:
            raise MidstreamError(f"a ring was not changed: {refused[0]}", place="lab", remedy="report it")
        return list(ManifestLog(self.checkpoint / "manifests").kept())[-steps:]

    def _answers(self, place: int) -> Path:
        return self.root / "answers" / _name(place)

    def found(self, place: int, manifests: Sequence[Manifest]) -> RingRun:
        spreads = [one for manifest in manifests if (one := manifest.queries[_name(place)].nodes) is not None]
        folders = (self._answers(place) / f"step={step:08d}" for step in range(1, len(manifests)))
        results = {
            tuple(row.values())
            for folder in folders
            for file in sorted(folder.glob("*.parquet"))
            for row in pq.read_table(file).select(list(LABELS[: self.rings[place].ways].lower())).to_pylist()
        }
        return RingRun(tuple(_counted(before, after) for before, after in pairwise(spreads)), frozenset(results))


def _name(place: int) -> str:
    return f"ring_{place}"


def _counted(before: NodeSpread, after: NodeSpread) -> StepCounts:
    # Counters begin anew with another number of nodes.
    goes_on = before.since == after.since and len(before.work) == len(after.work)
    compared = [one.comparisons for one in after.work]
    visits, moved = sum(one.visits for one in after.work), after.moved
    if goes_on:
        compared = [now - one.comparisons for now, one in zip(compared, before.work, strict=True)]
        visits, moved = visits - sum(one.visits for one in before.work), moved - before.moved
    return StepCounts(tuple(compared), visits, tuple(float(one.rows) for one in after.work), moved)


@dataclass(frozen=True)
class OnCluster:
    """A ring on the virtual cluster over rows, windows full at the first end; counted from one end to the next."""

    rows: ValuedRows
    ring: SpreadRing
    ends: Sequence[float]

    @cached_property
    def lengths(self) -> list[int]:
        """The number of nodes in each step after the first."""
        course = self._run[1]
        return [next((n for time, n in reversed(course) if time < end), self.ring.nodes) for end in self.ends[1:]]

    @cached_property
    def found(self) -> RingRun:
        """The counts of each step, and the results."""
        counts, _ = self._run
        arrivals = self.rows.arrivals(self.ring.ways, self.ring.selectivity)
        times = np.array([time for time, _, _ in arrivals.since(self.ends[0])])
        compared = np.zeros((len(times), max(node for _, node in counts.compared_at) + 1), np.int64)
        for (cycle, node), pairs in counts.compared_at.items():
            compared[cycle, node] = pairs
        steps = []
        for begin, end in pairwise(self.ends):
            low, high = np.searchsorted(times, [begin, end]).tolist()
            visits = sum(counts.visits.get(cycle, 0) for cycle in range(low, high))
            moved = round((high - low) / len(times) * max(counts.inserted - len(times), 0))
            pairs = compared[low:high].sum(axis=0)[: max(self.ring.nodes, *self.lengths)]
            held = float(np.mean(counts.state_rows[low:high]))
            steps.append(StepCounts(tuple(pairs.tolist()), visits, (held,), moved))
        results = frozenset(tuple(number for _, number in sorted(rows)) for rows in counts.results)
        return RingRun(tuple(steps), results)

    @cached_property
    def _run(self) -> tuple[RingCounts, list[tuple[float, int]]]:
        # With the course of the ring's length.
        ring, begin = self.ring, self.ends[0]
        arrivals, priced = self.rows.arrivals(ring.ways, ring.selectivity), costs(ring.join)
        if ring.adaptation is not None:
            adaptive = AdaptiveRing(arrivals, WINDOW, ring.nodes, priced, begin=begin, selectivity=ring.selectivity,
                                    adaptation=ring.adaptation)  # fmt: skip
            return adaptive.run(), [(moment.time, moment.nodes) for moment in adaptive.course]
        if ring.scheme in ("psp", "psp_i", "psp_d"):
            kind, at_once = DynamicRing if ring.scheme == "psp_d" else RingCluster, 2 * (ring.scheme == "psp_i")
            return kind(arrivals, WINDOW, ring.nodes, priced, begin=begin, concurrent=at_once, queued=True).run(), []
        windows = dict.fromkeys(LABELS[: ring.ways], round(WINDOW * MICROSECONDS))
        deployment = Deployment(windows, ring.nodes, **ring.options)
        return RoutedCluster(spreadings()[ring.scheme], deployment, arrivals, priced, begin).run(), []
