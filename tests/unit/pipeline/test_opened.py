"""A checkpoint opened from outside: what operators hold as tables, savepoints, going back to them, forking."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.checkpoint.epochs import EpochClaim, Epochs
from midstream.checkpoint.folders import Folders
from midstream.checkpoint.savepoints import Savepoints
from midstream.cli.main import main
from midstream.model.manifest import Manifest
from midstream.sinks import FileSink
from midstream.storage.sweep import sweep

SQL = "SELECT A.k, A.v AS a, B.v AS b FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS"
SECOND = 1_000_000


def rows(step: int) -> dict[str, pa.Table]:
    """Three rows of each stream in a step, which lasts a second."""
    times = pa.array([step * SECOND + i for i in range(3)], pa.timestamp("us"))
    values = [step * 10 + i for i in range(3)]
    return {name: pa.table({"k": [0, 1, 2], "ts": times, "v": values}) for name in "AB"}


def start(checkpoint: Path, sink: Path | None = None) -> ms.Engine:
    engine = ms.Engine(checkpoint=checkpoint, durable=False, lanes=2)
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP, v BIGINT", timestamp="ts")
    engine.add_query("pairs", SQL, sink=None if sink is None else ms.sinks.files(sink))
    return engine


def run(checkpoint: Path, steps: range, sink: Path | None = None) -> list[pa.Table]:
    with start(checkpoint, sink) as engine:
        return [engine.push(rows(step))["pairs"] for step in steps]


def in_sink(folder: Path) -> Counter[tuple[int, ...]]:
    tables = [pq.read_table(path) for path in sorted(folder.glob("step=*/*.parquet"))]
    return counted(tables)


def counted(tables: list[pa.Table]) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[pa.Table]:
    """What an engine says that is not disturbed."""
    return run(tmp_path_factory.mktemp("undisturbed") / "ckpt", range(45))


def test_a_savepoint_outlives_retention_and_is_gone_back_to(tmp_path: Path, answers: list[pa.Table]) -> None:
    ckpt, sink = tmp_path / "ckpt", tmp_path / "sink"
    run(ckpt, range(4), sink)
    opened = ms.open(ckpt)
    assert opened.savepoint("early") == 3
    then = opened.state("rows of A").arrow()
    run(ckpt, range(4, 40), sink)
    assert opened.steps[0] > 3, "the step is kept by the savepoint alone"
    assert opened.savepoints == {"early": 3}
    assert opened.state("rows of A", "early").arrow().equals(then)
    went = opened.rewind("early")
    assert went.step == 3 and went.given_up[-1] == 39
    assert in_sink(sink) == counted(answers[:4])
    found = run(ckpt, range(4, 45), sink)
    assert counted(found) == counted(answers[4:])
    assert in_sink(sink) == counted(answers)


def test_a_dropped_savepoint_keeps_nothing(tmp_path: Path) -> None:
    ckpt = tmp_path / "ckpt"
    run(ckpt, range(4))
    opened = ms.open(ckpt)
    opened.savepoint("early")
    opened.drop_savepoint("early")
    assert opened.savepoints == {}
    run(ckpt, range(4, 40))
    chunks = [path.name for path in (ckpt / "store").rglob("*.arrow")]
    assert not [name for name in chunks if name.startswith("00000000-")]
    with pytest.raises(ms.CheckpointError, match="there is no savepoint 'early'"):
        opened.rewind("early")


def test_a_fork_is_a_job_of_its_own(tmp_path: Path, answers: list[pa.Table]) -> None:
    ckpt, sink, new = tmp_path / "ckpt", tmp_path / "sink", tmp_path / "new"
    run(ckpt, range(10), sink)
    opened = ms.open(ckpt)
    opened.savepoint("here", 5)
    before = content(ckpt) | content(sink)
    job = opened.fork("here", new)
    assert job != opened.manifest().job == ms.open(ckpt).manifest().job
    assert ms.open(new).manifest().job == job
    assert [path for path in (new / "store").rglob("*.arrow") if path.stat().st_nlink > 1], "chunks are shared"
    assert counted(run(new, range(6, 45))) == counted(answers[6:])
    assert in_sink(new / "results" / "pairs") == counted(answers[6:])
    assert content(ckpt) | content(sink) == before, "the old job is as it was"
    run(ckpt, range(10, 45), sink)
    assert in_sink(sink) == counted(answers)
    assert ms.open(new).report().step == 44


@pytest.mark.parametrize("named", [False, True])
def test_a_query_that_waits_is_forked_with_a_sink_of_its_own(tmp_path: Path, named: bool) -> None:
    ckpt, new, out = tmp_path / "ckpt", tmp_path / "new", tmp_path / "out"
    with start(ckpt) as engine:
        engine.push(rows(0))
        engine.add_query("late", SQL)
        ms.open(ckpt).fork(0, new, {"late": {"path": str(out)}} if named else None)
        with ms.Engine(checkpoint=new, durable=False) as forked:
            answers = forked.push(rows(1))["late"]
        assert answers.num_rows and in_sink(out if named else new / "results" / "late") == counted([answers])
        assert not in_sink(ckpt / "results" / "late")
        assert engine.push(rows(1))["late"].equals(answers), "the old job goes on"
    assert in_sink(ckpt / "results" / "late") == counted([answers])


def test_a_fork_outlives_the_job_it_came_from(tmp_path: Path, answers: list[pa.Table]) -> None:
    ckpt, new = tmp_path / "ckpt", tmp_path / "new"
    run(ckpt, range(10))
    ms.open(ckpt).fork(9, new)
    for path in sorted(ckpt.rglob("*.arrow")):
        path.unlink()
    assert counted(run(new, range(10, 20))) == counted(answers[10:20])


def test_a_fork_cannot_write_what_the_old_job_writes(tmp_path: Path) -> None:
    ckpt, sink, new = tmp_path / "ckpt", tmp_path / "sink", tmp_path / "new"
    run(ckpt, range(3), sink)
    ms.open(ckpt).fork(2, new, {"pairs": {"path": str(sink)}})
    before = content(sink)
    with pytest.raises(ms.CheckpointError, match=f"results of another job.*at query pairs, sink {sink}"):
        run(new, range(3, 4), sink)
    assert content(sink) == before


def test_a_savepoint_of_steps_that_were_given_up_is_not_gone_back_to(tmp_path: Path) -> None:
    ckpt = tmp_path / "ckpt"
    run(ckpt, range(6))
    opened = ms.open(ckpt)
    opened.savepoint("later")
    opened.rewind(2)
    run(ckpt, range(3, 8))
    before = content(ckpt)
    with pytest.raises(ms.CheckpointError, match="was given up"):
        opened.rewind("later")
    assert content(ckpt) == before
    opened.fork("later", tmp_path / "new")
    assert ms.open(tmp_path / "new").manifest().step == 5


def damage_manifests(ckpt: Path) -> None:
    for path in (ckpt / "manifests").glob("*.json"):
        path.write_text("junk")


def test_a_savepoint_is_gone_back_to_when_all_manifests_are_damaged(tmp_path: Path, answers: list[pa.Table]) -> None:
    ckpt, sink = tmp_path / "ckpt", tmp_path / "sink"
    with start(ckpt, sink) as engine:
        for step in range(6):
            engine.push(rows(step))
            if step == 2:
                ms.open(ckpt).savepoint("early")
    damage_manifests(ckpt)
    with pytest.raises(ms.CheckpointError, match=f"go back to a savepoint with: midstream rewind {ckpt} early"):
        ms.open(ckpt).manifest()
    assert ms.open(ckpt).rewind("early").step == 2
    assert in_sink(sink) == counted(answers[:3]), "later results are taken back"
    run(ckpt, range(3, 8), sink)
    assert in_sink(sink) == counted(answers[:8])
    assert ms.open(ckpt).steps == tuple(range(2, 8)), "no damaged file is left"


def test_a_savepoint_of_an_earlier_start_is_forked_when_all_manifests_are_damaged(tmp_path: Path) -> None:
    ckpt = tmp_path / "ckpt"
    run(ckpt, range(3))
    ms.open(ckpt).savepoint("early")
    run(ckpt, range(3, 6))
    damage_manifests(ckpt)
    before = content(ckpt)
    with pytest.raises(ms.CheckpointError, match=f"time line is lost.*midstream fork {ckpt} early NEW"):
        ms.open(ckpt).rewind("early")
    assert content(ckpt) == before
    ms.open(ckpt).fork("early", tmp_path / "new")
    assert ms.open(tmp_path / "new").manifest().step == 2


def test_states_are_tables(tmp_path: Path) -> None:
    ckpt = tmp_path / "ckpt"
    run(ckpt, range(4))
    opened = ms.open(ckpt)
    table = opened.state("rows of A", 3).arrow()
    assert sorted(table["v"].to_pylist()) == [step * 10 + i for step in range(4) for i in range(3)]
    assert sorted(opened.state("rows of A", 1).arrow()["v"].to_pylist()) == [0, 1, 2, 10, 11, 12]
    lanes = {one.lane for one in opened.states() if one.name == "rows of A"}
    assert len(lanes) == 2
    parts = [opened.state("rows of A", lane=lane).arrow().num_rows for lane in sorted(lanes)]
    assert sum(parts) == table.num_rows and all(parts)
    (joined,) = {one.name for one in opened.states() if one.name.startswith("A by")}
    assert sorted(opened.state(joined).arrow()["A.v"].to_pylist()) == sorted(table["v"].to_pylist())
    total = opened.state("rows of A").duckdb().aggregate("sum(v)").fetchall()
    assert total == [(sum(table["v"].to_pylist()),)]
    held = [one for one in opened.states() if one.name == "rows of A"]
    assert min(one.oldest or 0 for one in held) == 0 and max(one.newest or 0 for one in held) == 3 * SECOND + 2
    with pytest.raises(ms.QueryError, match=r"no operator has the state 'rows of C'.*'rows of A'"):
        opened.state("rows of C")


def test_looking_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ckpt = tmp_path / "ckpt"
    run(ckpt, range(4))
    before = content(ckpt)
    opened = ms.open(ckpt)
    opened.report(2), opened.states(1), opened.state("rows of B")
    assert main(["state", str(ckpt), "--json"]) == 0
    assert content(ckpt) == before


def test_the_command_line_does_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ckpt, new = tmp_path / "ckpt", tmp_path / "new"
    run(ckpt, range(6))

    def said(*arguments: object, code: int = 0) -> str:
        assert main([str(argument) for argument in arguments]) == code
        out = capsys.readouterr()
        return out.err if code else out.out

    assert json.loads(said("savepoint", ckpt, "s", "--step", 4, "--json"))["savepoints"] == {"s": 4}
    assert json.loads(said("status", ckpt, "--json"))["savepoints"] == {"s": 4}
    assert "s: step 4" in said("status", ckpt)
    found = json.loads(said("state", ckpt, "pairs", "--json"))
    assert {one["name"] for one in found} >= {"rows of A", "rows of B"}
    shown = json.loads(said("state", ckpt, "--operator", "rows of A", "--step", "s", "--rows", 2, "--json"))
    assert (shown["rows"], len(shown["shown"])) == (15, 2)
    assert "rows of A: 3 of 18 rows" in said("state", ckpt, "--operator", "rows of A", "--rows", 3)
    assert "begins after s" in said("fork", ckpt, "s", new, "--sink", f"pairs={tmp_path / 'out'}")
    assert json.loads(said("status", new, "--json"))["queries"]["pairs"]["sink"]["path"] == str(tmp_path / "out")
    assert json.loads(said("rewind", ckpt, "s", "--json"))["given_up"] == [5]
    assert "dropped" in said("savepoint", ckpt, "s", "--drop")
    assert "there is no savepoint 's'" in said("rewind", ckpt, "s", code=1)
    assert "already has files" in said("fork", ckpt, 2, new, code=1)
    assert "not QUERY=DIR" in said("fork", ckpt, 2, tmp_path / "third", "--sink", "x", code=2)
    assert "there is no query 'x'" in said("fork", ckpt, 2, tmp_path / "third", "--sink", "x=y", code=2)
    assert "cannot be the name" in said("savepoint", ckpt, "../up", code=1)
    assert "no operator has the state" in said("state", ckpt, "--operator", "x", code=2)


def test_a_savepoint_name_is_given_once(tmp_path: Path) -> None:
    run(tmp_path / "ckpt", range(2))
    opened = ms.open(tmp_path / "ckpt")
    opened.savepoint("s", 0)
    with pytest.raises(ms.CheckpointError, match="there is already a savepoint 's'"):
        opened.savepoint("s")
    assert opened.savepoints == {"s": 0}


def test_a_savepoint_whose_chunks_are_gone_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "ckpt", range(2))
    next((tmp_path / "ckpt" / "store").rglob("*.arrow")).unlink()
    with pytest.raises(ms.CheckpointError, match="no longer has all chunks"):
        ms.open(tmp_path / "ckpt").savepoint("s")
    assert ms.open(tmp_path / "ckpt").savepoints == {}


def test_what_a_sink_cannot_take_back_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: FileSink, name: str, step: int, given_up: object = None) -> None:
        raise ms.SinkError(f"cannot go back to step {step}", place=self.path, remedy="take the rows out by hand")

    ckpt, sink = tmp_path / "ckpt", tmp_path / "sink"
    run(ckpt, range(4), sink)
    before = content(tmp_path)
    with monkeypatch.context() as context:
        context.setattr(FileSink, "check_forget", refuse)
        assert main(["rewind", str(ckpt), "1"]) == 1
        assert content(tmp_path) == before
    run(ckpt, range(4, 5), sink)
    assert ms.open(ckpt).steps[-1] == 4


def test_what_a_sink_cannot_take_back_since_the_claim_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `take_over` the job does steps until the checkpoint is claimed."""
    ckpt, sink = tmp_path / "ckpt", tmp_path / "sink"
    with start(ckpt, sink) as engine:
        for step in range(4):
            engine.push(rows(step))
        claim = Epochs.claim

        def push_before(epochs: Epochs, *, take_over: bool = False) -> EpochClaim:
            engine.push(rows(4))
            return claim(epochs, take_over=take_over)

        def refuse_step_4(self: FileSink, name: str, step: int, given_up: object = None) -> None:
            if self.has(4):
                raise ms.SinkError("step 4 stays", place=self.path, remedy="take its rows out by hand")

        monkeypatch.setattr(Epochs, "claim", push_before)
        monkeypatch.setattr(FileSink, "check_forget", refuse_step_4)
        with pytest.raises(ms.SinkError, match="step 4 stays"):
            ms.open(ckpt).rewind(1, take_over=True)
    monkeypatch.undo()
    assert ms.open(ckpt).steps[-1] == 4
    assert run(ckpt, range(5, 6), sink)


def test_a_savepoint_of_a_step_that_is_kept_no_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that looked before the savepoint was there takes its chunks right after it has seen them all."""
    ckpt, add = tmp_path / "ckpt", Savepoints.add
    with start(ckpt) as engine:
        for step in range(12):
            engine.push(rows(step))
        opened = ms.open(ckpt)
        oldest = opened.steps[0]
        folders = Folders(str(ckpt))

        def add_while_the_job_goes_on(self: Savepoints, name: str, manifest: Manifest) -> None:
            for step in range(12, 14):
                engine.push(rows(step))
            kept = folders.kept()
            add(self, name, manifest)
            sweep(folders.chunks, kept)

        with monkeypatch.context() as context:
            context.setattr(Savepoints, "add", add_while_the_job_goes_on)
            with pytest.raises(ms.CheckpointError, match="is no longer kept"):
                opened.savepoint("old", oldest)
        assert opened.savepoints == {}
        assert opened.savepoint("new", opened.steps[0]) in opened.steps
