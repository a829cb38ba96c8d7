"""A checkpoint folder read from outside, of a job and of a saved engine."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.model.codec import encode
from midstream.model.errors import CheckpointError, NoCheckpointError, QueryError
from tests.unit.building import both, engine, table

SQL = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS"


def pushed() -> Any:
    made = engine("ABC")
    made.add_query("q", SQL)
    for at in range(3):
        made.push(both("ABC", table([at], k=[1])))
    return made


@pytest.fixture
def job(tmp_path: Path) -> Checkpoint:
    made = pushed()
    entry = made.manifest.queries["q"]
    manifest = made.manifest.with_query("q", replace(entry, sink={"format": "json", "path": "/out"}))
    ManifestLog(tmp_path / "manifests").publish(replace(manifest, job="of a test"))
    (tmp_path / "events").mkdir()
    for event in made.events:
        with (tmp_path / "events" / f"{event.step:012}.jsonl").open("a") as file:
            file.write(json.dumps(encode(event)) + "\n")
    return Checkpoint.open(tmp_path)


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoCheckpointError, match="there is no checkpoint here"):
        Checkpoint.open(tmp_path)
    with pytest.raises(NoCheckpointError, match="there is no such folder"):
        Checkpoint.open(tmp_path / "nowhere")


def test_a_job_that_has_done_no_step_says_so_and_an_engine_is_shown(tmp_path: Path) -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A")
    ManifestLog(tmp_path / "job" / "manifests").publish(replace(made.manifest, job="of a test", pending=()))
    with pytest.raises(CheckpointError, match="has not finished a step yet"):
        Checkpoint.open(tmp_path / "job").report()
    made.save(tmp_path / "engine")
    saved = Checkpoint.open(tmp_path / "engine")
    found = saved.report()
    assert (found.step, found.queries, [command.query for command in found.pending]) == (-1, {}, ["q"])
    (waiting,) = saved.status(found)["waiting_commands"]
    assert (waiting["id"], waiting["command"], waiting["query"]) == (None, "add_query", "q")


def test_events_are_those_of_a_jobs_log_or_of_a_saved_engine(job: Checkpoint, tmp_path: Path) -> None:
    made = pushed()
    made.save(tmp_path / "saved")
    for seen in (job, Checkpoint.open(tmp_path / "saved")):
        assert list(seen.events()) == [encode(event) for event in made.events]
        assert list(seen.events(after=1)) == [encode(event) for event in made.events if event.step > 1]
        assert seen.last_events(2) == [encode(event) for event in made.events[-2:]]
        assert seen.last_events(0) == []
        assert seen.status(seen.report())["last_step"] == encode(made.events[-1])


def test_sinks_are_those_of_the_newest_manifest(job: Checkpoint, tmp_path: Path) -> None:
    assert job.sinks() == {"q": {"format": "json", "path": "/out"}}
    pushed().save(tmp_path / "saved")
    assert Checkpoint.open(tmp_path / "saved").sinks() == {"q": {}}


def test_a_command_is_checked_and_logged_as_manifests_write_it(job: Checkpoint) -> None:
    assert job.send(Migrate("q", "( A (B  C))")) == (1, Migrate("q", "(A (B C))"))
    assert job.send(DropQuery("q"))[0] == 2
    with pytest.raises(QueryError, match="no query 'q'"):
        job.send(DropQuery("q"))
    assert [command for _, command in job.waiting(job.report())] == [Migrate("q", "(A (B C))"), DropQuery("q")]
    ManifestLog(job.manifests.storage).publish(replace(job.manifest(), step=3, last_command=1))
    assert job.waiting(job.report()) == ((2, DropQuery("q")),)
    assert job.send(Rescale(2))[0] == 3


def test_a_query_whose_results_would_go_to_another_ones_folder_is_not_logged(job: Checkpoint, tmp_path: Path) -> None:
    sql = job.manifest().queries["q"].sql
    job.send(AddQuery("p", sql, sink={"format": "parquet", "path": str(tmp_path / "out")}))
    with pytest.raises(ms.SinkError, match=r"already gets the results of query p.*at query r"):
        job.send(AddQuery("r", sql, sink={"format": "csv", "path": f"{tmp_path}/in/../out/"}))
    job.send(AddQuery("r", sql, sink={"format": "csv", "path": str(tmp_path / "other")}))
    assert [command.query for _, command in job.waiting(job.report())] == ["p", "r"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (
            {"path": "{}/out/inner"},
            r"out/inner cannot be in the folder of the results of query p, .*/out \(at query r\)",
        ),
        ({"path": "{}/x/.."}, "cannot contain the folder of the results of query [np]"),
        ({"type": "files", "path": "{}/out"}, "already gets the results of query p"),
        ({"path": "{}/late/A"}, "in the folder of the checkpoint"),
        ({"path": "{}/manifests"}, "in the folder of the checkpoint"),
        ({"path": "{}/results/n"}, "already gets the results of query n"),
        ({"path": 7}, r"7 is not a string \(at query r\)"),
        ({"path": "hdfs://a"}, "cannot keep files on hdfs"),
        ({"path": "{}/a", "format": "xml"}, "unknown format 'xml'"),
        ({"colour": 1}, r"is not a sink \(at query r\)"),
        ({"type": "none"}, "unknown sink 'none'"),
        ({"type": "delta"}, "cannot be made"),
        ({"type": "delta", "path": "s3://key:word@b/x"}, "must not contain credentials"),
        ({"type": "postgresql", "table": "t", "dsn": "sslkeylogfile=/x"}, "must not contain sslkeylogfile"),
        ({"type": "postgresql", "table": "t", "dsn": "password=x"}, "must not contain a password"),
        ({"function": "f"}, "cannot contain a Python function"),
    ],
)
def test_a_query_whose_sink_no_job_can_have_is_not_logged(
    job: Checkpoint, tmp_path: Path, sink: dict[str, Any], said: str
) -> None:
    sql = job.manifest().queries["q"].sql
    job.send(AddQuery("p", sql, sink={"format": "parquet", "path": str(tmp_path / "out")}))
    job.send(AddQuery("n", sql))
    job.commands.append(AddQuery("bad", sql, sink={"colour": 1}))  # It waits to be refused, and is in nobody's way.
    named = {key: value.format(tmp_path) if key == "path" and value != 7 else value for key, value in sink.items()}
    with pytest.raises(ms.SinkError, match=said):
        job.send(AddQuery("r", sql, sink=named))
    for fine in ("outer", "results/r", "out-2"):
        job.send(AddQuery(fine, sql, sink={"path": f"{tmp_path}/{fine}"}))
    assert len(job.waiting(job.report())) == 6


def test_it_needs_neither_spark_nor_the_command_lines_library(job: Checkpoint) -> None:
    program = (
        "import sys; from midstream.checkpoint.reader import Checkpoint\n"
        f"seen = Checkpoint.open({job.url!r}); found = seen.report()\n"
        "assert seen.status(found)['last_step']['step'] == found.step == 2 and list(seen.events()) and seen.sinks()\n"
        "loaded = {name.partition('.')[0] for name in sys.modules} & {'pyspark', 'py4j', 'typer', 'rich', 'click'}\n"
        "assert not loaded, loaded"
    )
    source = str(Path(ms.__file__).parents[1])
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": source})
