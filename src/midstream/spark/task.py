"""What runs in a Python worker: one partition of one step, from rows to chunks, results and a line of JSON.

Nothing else goes back into the JVM: chunks go to the store, results and late rows to the sinks' staging folders.
"""

from __future__ import annotations

import json
import secrets
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from midstream.model.counters import Counters
from midstream.model.errors import MidstreamError
from midstream.runtime.lane import StepClock
from midstream.runtime.lane_key import SINGLE
from midstream.runtime.watermark import Seen
from midstream.spark import crash_points, formats
from midstream.spark.sheets import Sheet, dead_sheet, late_sheet
from midstream.spark.unpack import Carried, Share, inputs, nothing, shares
from midstream.state.store.files import FileStore
from midstream.step.fold import state_of
from midstream.step.lane_step import LaneOutput, lane_step
from midstream.step.plan_step import StepPlan
from midstream.step.route import lane_name

RESULT = pa.schema([("result", pa.string())])


@dataclass(frozen=True)
class StepTask:
    """A step as its tasks know it; called with the batches of a partition.

    `lanes` are the lanes of each partition as (group number, lane). `teller` names for each stream the group that
    counts its rows and keeps its late ones. `folders` has for each query the staging folder and the format of its
    results, `outputs` the folders of late rows and dead letters.
    """

    plan: StepPlan
    groups: tuple[str, ...]
    lanes: tuple[tuple[tuple[int, int], ...], ...]
    streams: tuple[Carried, ...]
    stream_bits: int
    counted: tuple[str, ...]
    teller: Mapping[str, int]
    clock: StepClock
    store: str
    folders: Mapping[str, tuple[str, str]]
    outputs: Mapping[str, str]
    victims: tuple[int, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The partition's report, as one row."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        try:
            report = self._run(context.partitionId(), batches)
        except MidstreamError as error:  # A user's mistake stays one when it is done again.
            report = {"error": [type(error).__name__, error.message, error.place, error.remedy]}
        except Exception:  # So does a mistake of ours; Spark would try four times and fill the log.
            report = {"failed": traceback.format_exc()}
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(report)])], schema=RESULT)

    def _run(self, partition: int, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
        numbers = {number: self.plan.lanes(group) for number, group in enumerate(self.groups)}
        arrived = shares(batches, self.streams, numbers, self.stream_bits)
        desk = Desk(self, secrets.token_hex(4))
        admitted = {place: desk.admit(place[0], share) for place, share in arrived.items()}
        for group, lane in self.lanes[partition]:
            own = {
                share.stream.name: (share, admitted[g, n, s])
                for (g, n, s), share in arrived.items()
                if (g, n) == (group, lane)
            }
            desk.deliver(group, lane, self._lane(group, lane, own))
            crash_points.reach("amid_tasks", self.clock.step, self.victims)
        return desk.report()

    def _lane(self, group: int, lane: int, own: Mapping[str, tuple[Share, Any]]) -> LaneOutput:
        name = self.groups[group]
        program, lane_id, slotted = self.plan.program(name), lane_name(name, lane), name != SINGLE
        read = {stream for unit in program.units for stream in unit.streams}
        batches = {}
        for stream in self.streams:
            if stream.name in own:
                share, chosen = own[stream.name]
                batches[stream.name] = inputs(share, chosen, self.counted, slotted)
            elif stream.name in read:
                batches[stream.name] = nothing(stream, self.counted, slotted)
        store = FileStore(self.store)
        return lane_step(program, lane_id, state_of(self.plan, name, lane_id, store), batches, self.clock, store)


@dataclass
class Desk:
    """What a partition has to tell, as it comes together; `token` keeps its files apart from those of another
    attempt.
    """

    task: StepTask
    token: str
    seen: dict[str, Seen] = field(default_factory=dict)
    lanes: dict[str, Any] = field(default_factory=dict)
    files: list[tuple[str, str, str, int]] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)

    def admit(self, group: int, share: Share) -> Any:
        """Which rows of a share enter; None for all. The others go to their outputs, once, however many groups got
        them.
        """
        stream, task = share.stream, self.task
        times = share.rows.column("_ts")
        watermark = task.clock.before[stream.name]
        readable = None if not times.null_count else times.is_valid().to_numpy(zero_copy_only=False)
        words = times.fill_null(0).to_numpy() if times.null_count else times.to_numpy()
        on_time = words >= watermark if readable is None else readable & (words >= watermark)
        chosen = None if on_time.all() else on_time
        entered = words if chosen is None else words[chosen]
        sent = f"{group}:{stream.name}"
        self.sent[sent] = self.sent.get(sent, 0) + len(entered)
        if task.teller[stream.name] == group:
            late = late_sheet(share, chosen, readable, watermark)
            dead = dead_sheet(share, readable)
            for kind, sheet in (("late", late), ("dead_letters", dead)):
                self._put_sheet(kind, stream.name, sheet)
            greatest = int(entered.max()) if len(entered) else None
            fresh = Seen(greatest, len(entered), late.rows, dead.rows)
            self.seen[stream.name] = self.seen.get(stream.name, Seen()) + fresh
        return chosen

    def deliver(self, group: int, lane: int, output: LaneOutput) -> None:
        """Write a lane's results and note its state."""
        name = lane_name(self.task.groups[group], lane)
        for query, answer in output.results.items():
            folder, format = self.task.folders[query]
            self._put("results", query, folder, name, answer.table, format)
        self.lanes[name] = output.to_json()

    def report(self) -> dict[str, Any]:
        """Everything as JSON values."""
        seen = {name: list(vars(one).values()) for name, one in self.seen.items()}
        return {"lanes": self.lanes, "files": self.files, "seen": seen, "sent": self.sent}

    def _put_sheet(self, kind: str, stream: str, sheet: Sheet) -> None:
        if sheet.rows:
            self._put(
                kind, stream, self.task.outputs[f"{kind}:{stream}"], f"rows{len(self.files)}", sheet.table, "parquet"
            )

    def _put(self, kind: str, name: str, folder: str, stem: str, table: pa.Table, format: str) -> None:
        if table.num_rows:
            file = f"{stem}-{self.token}.{format}"
            formats.write(table, f"{folder}/{file}", format)
            self.files.append((kind, name, file, table.num_rows))


def stripped(plan: StepPlan) -> StepPlan:
    """The plan without what no task looks at, so that it travels light and programs are known again."""
    queries = {name: replace(entry, counters=Counters(), sink=None) for name, entry in plan.manifest.queries.items()}
    manifest = replace(plan.manifest, queries=queries, operators={}, totals=Counters(), published={}, progress={})
    return replace(plan, manifest=manifest, events=())
