"""An engine on a checkpoint: taken up, declared anew, refused, commanded from outside, gone back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import app
from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.model.events import CommandRefused, LanesRescaled, MigrationEnded
from midstream.sinks import FileSink, StagedStep
from midstream.step import plan_step
from midstream.storage.places import storage_at
from tests.unit.building import DDL, both, table

SQL = "SELECT A.k, B.v AS w FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] WHERE A.k = B.k"
WIDER = SQL.replace("20", "40")


def opened(root: Path, sql: str = SQL, sink: Any = None, plan: str | None = None, **options: Any) -> ms.Engine:
    engine = ms.Engine(checkpoint=root / "checkpoint", **options)
    for name in "AB":
        engine.create_stream(name, DDL, timestamp="ts")
    engine.add_query("pairs", sql, plan, sink)
    return engine


def step(number: int) -> dict[str, pa.Table]:
    return both("AB", table([10 * number, 10 * number + 1], k=[1, 2], v=[number, -number]))


def in_the_sink(folder: Path) -> list[dict[str, Any]]:
    return [row for file in sorted(folder.glob("step=*/*")) for row in pq.read_table(file).to_pylist()]


def test_results_are_returned_and_in_the_checkpoint(tmp_path: Path) -> None:
    returned: list[dict[str, Any]] = []
    with opened(tmp_path) as engine:
        for number in range(3):
            returned += engine.push(step(number))["pairs"].to_pylist()
    assert in_the_sink(tmp_path / "checkpoint" / "results" / "pairs") == returned != []


@pytest.mark.parametrize("declares", [True, False])
def test_it_goes_on_where_it_stopped(tmp_path: Path, declares: bool) -> None:
    """Whether its streams and queries are declared again or not; also with more lanes than before."""
    twin = ms.Engine()
    for name in "AB":
        twin.create_stream(name, DDL, timestamp="ts")
    twin.add_query("pairs", SQL)
    for number in range(8):
        made = opened(tmp_path) if declares or number == 0 else ms.Engine(checkpoint=tmp_path / "checkpoint")
        with made as engine:
            assert engine.manifest.step == number - 1
            assert engine.push(step(number))["pairs"].equals(twin.push(step(number))["pairs"])
            assert engine.metrics()["state_rows"] == twin.metrics()["state_rows"]
            assert engine.metrics()["comparisons"] == twin.metrics()["comparisons"]


def test_small_chunks_of_a_step_lie_in_one_file(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for number in range(3):
            engine.push(step(number))
        store = tmp_path / "checkpoint" / "store"
        assert len(list(store.glob("**/*.arrow"))) == 3
        assert engine.report().chunks > 6


def test_to_declare_the_same_again_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, plan="(A B)") as engine:
        engine.push(step(0))
    with opened(tmp_path, plan="(A B)") as engine:
        assert engine.manifest.pending == ()


def test_what_is_declared_otherwise_is_changed(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.push(step(0))
    with opened(tmp_path, WIDER, plan="(B A)", lanes=3) as engine:
        assert sorted(command.kind for command in engine.manifest.pending) == ["change_query", "migrate", "rescale"]
        engine.push(step(1))
        assert engine.manifest.queries["pairs"].sql == WIDER
        assert engine.manifest.queries["pairs"].plan == "(B A)"
        assert engine.manifest.lanes == 3
    with opened(tmp_path, WIDER, plan="(B A)", lanes=3) as engine:
        assert engine.manifest.pending == ()


def test_what_a_command_changed_stays(tmp_path: Path) -> None:
    """As on Spark: only what the program itself declares otherwise than before is changed."""
    with opened(tmp_path, plan="(A B)", lanes=2) as engine:
        engine.push(step(0))
        engine.migrate("pairs", "(B A)")
        engine.rescale(4)
        engine.push(step(1))
    with opened(tmp_path, plan="(A B)", lanes=2) as engine:
        assert engine.manifest.pending == ()
        assert (engine.manifest.queries["pairs"].plan, engine.manifest.lanes) == ("(B A)", 4)


def test_a_query_that_a_command_dropped_stays_dropped(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.push(step(0))
        Checkpoint.open(tmp_path / "checkpoint").send(DropQuery("pairs"))
        assert engine.push(step(1)) == {}
    with opened(tmp_path) as engine:
        assert engine.push(step(2)) == {}


def test_a_query_that_the_program_dropped_can_be_added_again(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.push(step(0))
        engine.drop_query("pairs")
        engine.push(step(1))
    with opened(tmp_path) as engine:
        assert "pairs" in engine.push(step(2))


def test_in_one_program_nothing_is_declared_twice(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        with pytest.raises(ms.QueryError, match="already"):
            engine.add_query("pairs", SQL)
        with pytest.raises(ms.InputError, match="already"):
            engine.create_stream("A", DDL, timestamp="ts")


def test_a_stream_that_is_not_the_one_of_before_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.push(step(0))
    with ms.Engine(checkpoint=tmp_path / "checkpoint") as engine:
        with pytest.raises(ms.CheckpointError, match="'k' of stream 'A' cannot change from int64 to string"):
            engine.create_stream("A", "k VARCHAR, ts TIMESTAMP", timestamp="ts")
        engine.create_stream("A", DDL, timestamp="ts", lateness="5 seconds")
        assert engine.manifest.streams["A"].lateness == 5_000_000


def test_what_is_declared_and_commanded_outlives_the_process_before_the_next_push(tmp_path: Path) -> None:
    opened(tmp_path).push(step(0))
    abandoned = ms.Engine(checkpoint=tmp_path / "checkpoint", take_over=True)
    abandoned.add_query("more", WIDER)
    abandoned.rescale(2)
    with ms.Engine(checkpoint=tmp_path / "checkpoint", take_over=True) as engine:
        assert engine.push(step(1)).keys() == {"pairs", "more"}
        assert engine.manifest.lanes == 2


def test_two_engines_on_one_checkpoint(tmp_path: Path) -> None:
    """The second is refused; one that takes over goes on, and the first changes nothing any more."""
    first = opened(tmp_path)
    first.push(step(0))
    with pytest.raises(ms.HeldCheckpointError):
        opened(tmp_path)
    with opened(tmp_path, take_over=True) as second:
        with pytest.raises(ms.LostCheckpointError):
            first.push(step(1))
        with pytest.raises(ms.LostCheckpointError):
            first.push(step(1))
        second.push(step(1))
        first.close()
        second.push(step(2))
    assert len(in_the_sink(tmp_path / "checkpoint" / "results" / "pairs")) == 2 + 6 + 10


def test_one_of_another_process_holds_it(tmp_path: Path) -> None:
    program = (
        "import sys, midstream as ms\nengine = ms.Engine(checkpoint=sys.argv[1])\nprint('open', flush=True)\n"
        "sys.stdin.readline()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "checkpoint")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(ms.__file__).parent.parent)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    with pytest.raises(ms.HeldCheckpointError, match=f"process {process.pid}"):
        opened(tmp_path)
    process.kill()
    process.communicate()
    with opened(tmp_path) as engine:  # The other is known to be dead.
        engine.push(step(0))


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_late_rows_and_dead_letters_are_in_the_checkpoint(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    checkpoint = f"{tmp_path}/checkpoint" if place == "folder" else f"{request.getfixturevalue('bucket')}/checkpoint"
    with ms.Engine(checkpoint=checkpoint) as engine:
        for name in "AB":
            engine.create_stream(name, DDL, timestamp="ts")
        engine.add_query("pairs", SQL)
        engine.push(step(3))
        engine.push({"A": table([1, None], k=[7, 8])})
        assert engine.late["A"]["k"].to_pylist() == [7]
    with ms.Engine(checkpoint=checkpoint) as engine:
        assert engine.late["A"]["k"].to_pylist() == [7]
        assert engine.dead_letters["A"]["k"].to_pylist() == [8]
    (late,) = storage_at(checkpoint).names("late/A/step=00000001")
    assert late.endswith(".parquet")


def test_a_function_gets_each_step_once(tmp_path: Path) -> None:
    taken: list[tuple[int, str, int]] = []

    def function(rows: pa.Table, number: int, query: str) -> None:
        taken.append((number, query, rows.num_rows))

    for number in range(3):
        with opened(tmp_path, sink=function) as engine:
            engine.push(step(number))
    assert taken == [(0, "pairs", 2), (1, "pairs", 6), (2, "pairs", 10)]
    with ms.Engine(checkpoint=tmp_path / "checkpoint") as engine:
        with pytest.raises(ms.SinkError, match="function") as caught:
            engine.push(step(3))
        assert "name the function" in caught.value.remedy
        assert engine.manifest.step == 2


class Stubborn(FileSink):
    """A sink that fails a few times."""

    name = "stubborn"
    fails = 0

    def commit(self, staged: StagedStep) -> None:
        if type(self).fails:
            type(self).fails -= 1
            raise ms.SinkError("the disk is full", place=self.path, remedy="free some space")
        super().commit(staged)


def test_a_sink_that_fails_gets_the_results_with_the_next_push(tmp_path: Path) -> None:
    sink = Stubborn(str(tmp_path / "out"))
    with opened(tmp_path, sink=sink) as engine:
        engine.push(step(0))
        Stubborn.fails = 2
        with pytest.raises(ms.UndeliveredError, match="step 1 is committed") as caught:
            engine.push(step(1))
        assert "do not push the rows of this step again" in caught.value.remedy
        assert engine.manifest.step == 1
        with pytest.raises(ms.SinkError, match="the disk is full") as again:
            engine.push(step(2))
        assert not isinstance(again.value, ms.UndeliveredError), "nothing of step 2 was done"
        assert engine.manifest.step == 1
        engine.push(step(2))
    assert len(in_the_sink(tmp_path / "out")) == 2 + 6 + 10


def test_a_step_that_cannot_be_written_fails_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as engine:
        engine.push(step(0))

        def full(self: ManifestLog, manifest: object) -> None:
            raise ms.SinkError("cannot write: no space left on device", place="manifests")

        with monkeypatch.context() as patched:
            patched.setattr(ManifestLog, "add", full)
            with pytest.raises(ms.SinkError, match="no space"):
                engine.push(step(1))
        assert engine.manifest.step == 0
        assert engine.push(step(1))["pairs"].num_rows == 6
    assert len(in_the_sink(tmp_path / "checkpoint" / "results" / "pairs")) == 2 + 6


def command_line(*arguments: str) -> Any:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_commands_of_the_command_line_are_taken_with_the_next_push(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    with opened(tmp_path) as engine:
        engine.push(step(0))
        command_line("migrate", checkpoint, "pairs", "(B A)", "--strategy", "moving_state")
        command_line("rescale", checkpoint, "--lanes", "2")
        command_line("add", checkpoint, "more", WIDER)
        assert len(command_line("status", checkpoint)["waiting_commands"]) == 3
        assert engine.push(step(1)).keys() == {"pairs", "more"}
        kinds = {type(event) for event in engine.events}
        assert {MigrationEnded, LanesRescaled} <= kinds
        assert command_line("status", checkpoint)["waiting_commands"] == []
        assert command_line("explain", checkpoint, "pairs")["plan"] == "(B A)"
    with opened(tmp_path) as engine:
        assert engine.push(step(2)).keys() == {"pairs", "more"}
        assert engine.manifest.last_command == 3


def test_a_push_plans_its_step_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, united = list[int](), plan_step.united
    with opened(tmp_path) as engine:
        engine.push(step(0))
        Checkpoint.open(tmp_path / "checkpoint").send(AddQuery("more", SQL))
        monkeypatch.setattr(plan_step, "united", lambda manifest: planned.append(manifest.step) or united(manifest))
        assert engine.push(step(1)).keys() == {"pairs", "more"}
        assert planned == [0]


def test_a_command_that_the_step_refuses_is_in_the_events(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.push(step(0))
        checkpoint = Checkpoint.open(tmp_path / "checkpoint")
        checkpoint.commands.append(DropQuery("nobody"))
        engine.push(step(1))
        assert [type(event) for event in engine.events if isinstance(event, CommandRefused)]
        assert [event for event in checkpoint.events() if event["event"] == "command_refused"]


def test_it_goes_back_and_does_steps_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for number in range(4):
            engine.push(step(number))
    kept = in_the_sink(tmp_path / "checkpoint" / "results" / "pairs")
    command_line("rewind", str(tmp_path / "checkpoint"), "1")
    assert len(in_the_sink(tmp_path / "checkpoint" / "results" / "pairs")) == 2 + 6
    with opened(tmp_path) as engine:
        assert engine.manifest.step == 1
        for number in (2, 3):
            engine.push(step(number))
    assert in_the_sink(tmp_path / "checkpoint" / "results" / "pairs") == kept


def saved(root: Path) -> None:
    ms.Engine().save(root)


def of_spark(root: Path) -> None:
    """A checkpoint as a job on Spark leaves it, as far as an engine looks."""
    from midstream.checkpoint.writer import Writer
    from midstream.model.manifest import Manifest

    log = ManifestLog(root / "manifests")
    writer = Writer.take(log)
    writer.begin(Manifest("job", 3))
    writer.release()


@pytest.mark.parametrize(
    ("make", "remedy"),
    [(saved, "Engine.load"), (of_spark, "run it with --engine spark")],
    ids=["saved", "of Spark"],
)
def test_a_folder_of_something_else_is_refused(tmp_path: Path, make: Callable[[Path], None], remedy: str) -> None:
    make(tmp_path / "checkpoint")
    before = sorted((tmp_path / "checkpoint").rglob("*"))
    with pytest.raises(ms.CheckpointError) as caught:
        ms.Engine(checkpoint=tmp_path / "checkpoint")
    assert remedy in caught.value.remedy
    assert sorted((tmp_path / "checkpoint").rglob("*")) == before


def test_it_can_be_saved_and_loaded_as_one_in_memory(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.push(step(0))
        engine.save(tmp_path / "saved")
        loaded = ms.Engine.load(tmp_path / "saved")
        assert engine.push(step(1))["pairs"].equals(loaded.push(step(1))["pairs"])


def test_an_engine_in_memory_has_no_sinks() -> None:
    engine = ms.Engine()
    engine.create_stream("A", DDL, timestamp="ts")
    with pytest.raises(ms.InputError, match="no sinks"):
        engine.add_query("q", "SELECT A.k FROM A [RANGE 1 SECOND]", sink=print)


def test_two_queries_do_not_put_their_files_into_one_folder(tmp_path: Path) -> None:
    """Of each step one of them would have been lost."""
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with opened(tmp_path, sink=ms.sinks.files(tmp_path / "out")) as engine:
        engine.push(step(0))
        engine.add_query("others", WIDER, sink=ms.sinks.files(tmp_path / "link"))
        with pytest.raises(ms.SinkError, match=r"already gets the results of.*a folder of its own"):
            engine.push(step(1))
        engine.drop_query("others")
        engine.add_query("others", WIDER, sink=ms.sinks.files(tmp_path / "elsewhere"))
        engine.push(step(1))
    assert in_the_sink(tmp_path / "elsewhere") and len(list((tmp_path / "out").glob("step=*"))) == 2
