"""What tasks are sent of the state: the lanes of their partition, and no others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.serializers import CPickleSerializer

import midstream as ms
from midstream.commands.rescale import Rescale
from midstream.model.ids import LaneId
from midstream.model.manifest import Manifest
from midstream.pipeline.crash_points import CrashPoint
from midstream.pipeline.lane_task import ShippedPredicates, Writes
from midstream.runtime.piece_writer import SIZES
from midstream.runtime.watermark import StepClock
from midstream.spark.task import StepTask
from midstream.step.plan_step import StepPlan, plan_step
from midstream.storage.files import FileStore

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
JOIN = "SELECT A.k FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.k = B.k"


def manifest_of_four_lanes() -> Manifest:
    with ms.Engine(lanes=4) as engine:
        for name in "AB":
            engine.create_stream(name, SCHEMA, timestamp="ts")
        engine.add_query("q", JOIN)
        rows = pa.table({"k": range(64), "ts": range(64)}).cast(SCHEMA)
        engine.push({"A": rows, "B": rows})
        return engine._manifest


def task(plan: StepPlan, root: Path) -> StepTask:
    (group,) = plan.groups()
    lanes = (((0, 0), (0, 2)), ((0, 1), (0, 3)))
    writes = Writes(FileStore(root), {}, CrashPoint(), SIZES)
    made = StepTask(plan, (group,), lanes, (), (), {}, StepClock(2), writes, frozenset(), ShippedPredicates())
    return made.packed()


def test_a_task_unpickles_what_its_own_lanes_hold(tmp_path: Path) -> None:
    plan = plan_step(manifest_of_four_lanes(), ())
    sent, held = task(plan, tmp_path), plan.manifest.lane_states
    (group,) = plan.groups()
    assert len(held) == 4 and not sent.plan.manifest.lane_states
    for partition in range(2):
        own = {lane: held[lane] for lane in (LaneId(group, partition), LaneId(group, partition + 2))}
        assert sent.opened(partition).plan.manifest.lane_states == own


def test_lanes_of_another_number_begin_with_what_all_hold(tmp_path: Path) -> None:
    plan = plan_step(manifest_of_four_lanes(), (Rescale(2),))
    sent = task(plan, tmp_path)
    assert sent.opened(1).plan.manifest.lane_states == plan.manifest.lane_states
    assert [CPickleSerializer().loads(one) for one in sent.states[1:]] == [{}, {}], "what all need is sent once"
