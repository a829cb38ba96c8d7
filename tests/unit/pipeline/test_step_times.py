"""What steps take by the clock: kept in memory, written to the checkpoint, read from outside; no answer knows of it."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.checkpoint.folders import Folders
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.dashboard.api import Api
from midstream.embedded.job_run import FileJob
from midstream.model.errors import WriteError
from midstream.model.step_time import StepTime, rows_per_second, time_summary
from midstream.pipeline.step_times import StepTimes
from midstream.sql.job_file import parse_job
from midstream.storage.local import LocalStorage
from tests.unit.building import DDL, engine, table

SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
DURABLE = ["read", "fold", "store", "commit", "sinks"]


def on(checkpoint: Path) -> Any:
    made = ms.Engine(checkpoint=checkpoint)
    for name in "AB":
        made.create_stream(name, DDL, timestamp="ts", lateness="2 seconds")
    made.add_query("q", SQL)
    return made


def test_a_step_in_memory_tells_its_time_rows_results_and_lags() -> None:
    made = engine("AB", lateness=2_000_000)
    made.add_query("q", SQL)
    assert made.metrics()["time"] == {} and made.times == ()
    began = time.time()
    made.push({"A": table([1, 7], k=[1, 2]), "B": table([10, None], k=[1, 1])})
    made.push({"A": table([1], k=[1])})
    first, second = made.times
    assert (first.step, first.rows, first.results, first.late, first.rejected) == (0, {"A": 2, "B": 1}, 1, 0, 1)
    assert (second.step, second.rows, second.late) == (1, {}, 1)
    assert list(first.phases) == ["fold"] and 0 < first.seconds == sum(first.phases.values()) < 60
    assert began <= first.ended <= second.ended <= time.time()
    assert (first.newest, first.watermark) == (10_000_000, 5_000_000)
    assert first.watermark_lag == 5.0 and first.behind == first.ended - 10
    found = made.metrics()["time"]
    assert (found["step"], found["steps"], found["watermark_lag"]) == (1, 2, 5.0)
    assert json.loads(json.dumps(found)) == found


def test_a_failed_step_has_no_time() -> None:
    made = engine("AB")
    with pytest.raises(ms.MidstreamError):
        made.push({"X": table([1])})
    assert made.times == ()


def test_a_durable_step_tells_its_phases_and_the_checkpoint_has_them_when_the_engine_is_closed(tmp_path: Path) -> None:
    with on(tmp_path / "ckpt") as made:
        for second in range(5):
            made.push({"A": table([second], k=[1]), "B": table([second], k=[1])})
        told = made.times
        assert [list(one.phases) for one in told] == [DURABLE] * 5
    checkpoint = Checkpoint.open(tmp_path / "ckpt")
    assert checkpoint.step_times() == told
    assert [one.step for one in checkpoint.step_times(last=2)] == [3, 4] and checkpoint.step_times(last=0) == ()
    assert checkpoint.status(checkpoint.report())["time"] == time_summary(told)


def test_times_of_former_epochs_stay_and_those_of_steps_that_were_given_up_go(tmp_path: Path) -> None:
    with on(tmp_path / "ckpt") as made:
        for second in range(4):
            made.push({"A": table([second], k=[1])})
        first = made.times
    ms.open(tmp_path / "ckpt").rewind(1)
    checkpoint = Checkpoint.open(tmp_path / "ckpt")
    assert [one.step for one in checkpoint.step_times()] == [0, 1]
    with on(tmp_path / "ckpt") as again:
        again.push({"A": table([5], k=[1])})
        assert checkpoint.step_times() == (*first[:2], *again.times[:0])
        newest = again.times
    assert checkpoint.step_times() == (*first[:2], *newest)


def test_files_of_times_are_few_and_bounded(tmp_path: Path) -> None:
    for _ in range(8):
        with on(tmp_path / "ckpt") as made:
            made.push({})
    assert len(list((tmp_path / "ckpt" / "times").iterdir())) <= 4
    times = StepTimes(Folders(str(tmp_path / "ckpt")), epoch=99)
    for step in range(700):
        times.note(StepTime(step, ended=float(step), seconds=0.1))
    times.write()
    assert len((tmp_path / "ckpt" / "times" / "000099.jsonl").read_text().splitlines()) == len(times.newest) == 500


def test_they_are_written_by_themselves_within_seconds(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    times = StepTimes(Folders(str(tmp_path)), epoch=1, every=0.01)
    times.note(StepTime(3, ended=1.0, seconds=0.5))
    deadline = time.monotonic() + 30
    while not (tmp_path / "times" / "000001.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert json.loads((tmp_path / "times" / "000001.jsonl").read_text())["step"] == 3


def test_what_is_known_later_is_added_once_also_to_what_is_written(tmp_path: Path) -> None:
    times = StepTimes(Folders(str(tmp_path)), epoch=1)
    times.note(StepTime(3, ended=1.0, seconds=0.5, phases={"plan": 0.5}))
    times.write()
    for step in (2, 3, 3):
        times.amend(step, {"listing": 0.25}, {"A": 7})
    times.write()
    (known,) = times.newest
    assert (known.seconds, known.phases, known.backlog) == (0.75, {"listing": 0.25, "plan": 0.5}, {"A": 7})
    assert list(known.phases) == ["listing", "plan"]
    assert json.loads((tmp_path / "times" / "000001.jsonl").read_text())["backlog"] == {"A": 7}


def test_a_file_that_does_not_read_or_cannot_be_written_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on(tmp_path / "ckpt") as made:
        made.push({"A": table([1], k=[1])})
    (file,) = (tmp_path / "ckpt" / "times").iterdir()
    file.write_text('{"step": 1, "ended"')
    checkpoint = Checkpoint.open(tmp_path / "ckpt")
    assert checkpoint.step_times() == () and checkpoint.status(checkpoint.report())["time"] == {}
    with on(tmp_path / "ckpt") as made:
        made.push({"A": table([2], k=[1])})
        write = LocalStorage.write

        def fail(self: LocalStorage, name: str, data: bytes) -> None:
            if "times" in self.url:
                raise WriteError("the disk is full", place=name, remedy="free some")
            write(self, name, data)

        monkeypatch.setattr(LocalStorage, "write", fail)
    assert checkpoint.report().step == 1


def test_a_checkpoint_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    made = on(tmp_path / "ckpt")
    made.push({"A": table([1], k=[1])})
    shutil.rmtree(tmp_path / "ckpt")
    made._times.write()
    assert not (tmp_path / "ckpt").exists()


def test_a_job_of_files_tells_interval_reading_and_backlog(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(5):
        pq.write_table(table([number], k=[1]), tmp_path / "in" / f"{number}.parquet")
    job = parse_job(f"""
        checkpoint = "{tmp_path}/ckpt"
        [streams.A]
        format = "parquet"
        path = "{tmp_path}/in"
        timestamp = "ts"
        options = {{ maxFilesPerTrigger = 2 }}
        [queries.q]
        sql = "SELECT A.k FROM A"
        sink = {{ path = "{tmp_path}/out" }}""")
    with FileJob(job) as running:
        running.run(None, lambda: False, lambda patience: None)
    times = Checkpoint.open(tmp_path / "ckpt").step_times()
    assert [(one.rows, one.results, one.backlog) for one in times] == [
        ({"A": 2}, 2, {"A": 3}),
        ({"A": 2}, 2, {"A": 1}),
        ({"A": 1}, 1, {"A": 0}),
    ]
    assert [list(one.phases) for one in times] == [DURABLE] * 3


def test_a_step_under_way_is_in_the_status_and_the_dashboard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        dashboard = Api([checkpoint := Checkpoint.open(tmp_path / "ckpt")])
        engine._times.begin(0, 1_036_222)
        engine._times.write()
        with pytest.raises(ms.CheckpointError, match=r"not finished a step yet: step 0: 1,036,222 rows, .* so far"):
            checkpoint.report()
        assert "step 0: 1,036,222 rows" in dashboard.overview(0, {})["pending"]
        engine._times.end()
        engine.push({})
        version = dashboard.version(0, {})
        engine._times.begin(1)
        engine._times.write()
        assert dashboard.version(0, {}) != version
        assert dashboard.overview(0, {})["under_way"]["step"] == 1
        assert checkpoint.status(checkpoint.report())["under_way"]["step"] == 1
        assert main(["status", str(tmp_path / "ckpt")]) == 0
        assert re.search(r"(?m)^step 1: .* so far$", capsys.readouterr().out)
        assert len(checkpoint.step_times()) == 1
        engine.push({})
        assert engine.under_way is None
        assert checkpoint.status(checkpoint.report())["under_way"] is None, "it is over, whatever is written"
        engine._times.begin(2)
        engine._times.write()
    assert checkpoint.status(checkpoint.report())["under_way"] is None, "no job runs"


def test_a_step_that_fails_is_not_under_way() -> None:
    engine = ms.Engine()
    engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    with pytest.raises(ms.MidstreamError):
        engine.push({"A": pa.table({"other": [1]})})
    assert engine.under_way is None


def test_rows_a_second_leave_out_pauses_and_the_summary_is_of_the_last_minute() -> None:
    old = StepTime(0, ended=0.0, seconds=50.0, rows={"A": 1_000_000})
    times = [old, *(StepTime(s, 100.0 + s, 0.5, {"fold": 0.5}, rows={"A": 10, "B": 5}) for s in range(1, 5))]
    found = time_summary(times)
    assert (found["steps"], found["seconds"], found["phases"]) == (4, 0.5, {"fold": 0.5})
    assert found["rows_per_second"] == rows_per_second(times[1:]) == 60 / 2
    assert rows_per_second([]) is None
