"""The doctor finds every damage, says where and what mends it, mends what it says, and loses nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import midstream as ms
from midstream.checkpoint import event_log
from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.folders import Folders
from midstream.cli.main import main
from midstream.commands.drop_query import DropQuery
from midstream.model.manifest import Manifest
from midstream.model.time_line import Epoch
from midstream.pipeline.doctor import CHECKS, Examined, examine
from midstream.sinks import FileSink, StagedStep
from midstream.step import levels
from midstream.step.spreading import taken_over
from tests.unit.pipeline.test_opened import content, counted, in_sink, rows, run, start


@pytest.fixture
def ckpt(tmp_path: Path) -> Path:
    run(tmp_path / "ckpt", range(20), tmp_path / "sink")
    return tmp_path / "ckpt"


def harm(found: Examined) -> list[tuple[str, str]]:
    return [(one.check, one.problem) for one in found.findings if not one.harmless]


def newest_chunk(ckpt: Path) -> Path:
    return max((ckpt / "store").rglob("*.arrow"), key=lambda path: path.name)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data), 64):
        data[at] ^= 255
    path.write_bytes(bytes(data))


def test_a_healthy_checkpoint_is_well(ckpt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(ckpt)
    assert harm(examine(ckpt)) == [] and examine(ckpt).is_well
    assert main(["doctor", str(ckpt)]) == 0
    assert content(ckpt) == before


def test_steps_from_before_a_query_got_another_sink_are_not_missing(tmp_path: Path) -> None:
    for step, sink in enumerate(("old", "old", "new", "new")):
        with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
            engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
            engine.add_query("q", "SELECT k FROM A", sink=ms.sinks.files(str(tmp_path / sink)))
            engine.push({"A": [{"k": step, "ts": f"2024-01-01 00:00:0{step}"}]})
    assert harm(examine(tmp_path / "ckpt")) == []
    shutil.rmtree(tmp_path / "new" / "step=00000002")
    assert harm(examine(tmp_path / "ckpt")) == [("sinks", "results of step 2 are missing")]


def test_files_that_others_put_there_are_no_findings_and_stay(ckpt: Path) -> None:
    names = (".nfs000000000123", ".DS_Store", "README", "x (copy)", "000000000007.jsonl~", "epoch=x")
    folders = ("store", "manifests", "commands", "events", "times", "savepoints", "sources/A", "spark")
    found = examine(ckpt).findings
    for path in (ckpt / folder / name for folder in folders for name in names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("not ours")
    before = content(ckpt)
    assert examine(ckpt, repair=True).findings == found
    run(ckpt, range(20, 45), ckpt.parent / "sink")
    after = content(ckpt)
    assert not [path for path in before if path.name in names and path not in after]
    assert harm(examine(ckpt)) == [] and ms.open(ckpt).savepoints == {}


def test_a_job_that_runs_yields_no_finding(tmp_path: Path) -> None:
    with start(tmp_path / "ckpt", tmp_path / "sink") as engine:
        for step in range(36):
            engine.push(rows(step))
            if step % 7 == 0:
                assert examine(tmp_path / "ckpt").findings == ()
        with pytest.raises(ms.HeldCheckpointError):
            examine(tmp_path / "ckpt", repair=True)


def test_what_spark_is_writing_is_left_alone(ckpt: Path) -> None:
    (ckpt / "spark" / "epoch=000001").mkdir(parents=True)
    (ckpt / "spark" / "epoch=000001" / ".5.tmp").touch()
    assert not [one.problem for one in examine(ckpt).findings if "never finished" in one.problem]


def flipped_chunk(ckpt: Path) -> None:
    flip(newest_chunk(ckpt))


def missing_chunk(ckpt: Path) -> None:
    newest_chunk(ckpt).unlink()


def cut_manifest(ckpt: Path) -> None:
    path = sorted((ckpt / "manifests").glob("*-*.json"))[-1]
    path.write_bytes(path.read_bytes()[:-40])


def claim_of_nonsense(ckpt: Path) -> None:
    path = sorted((ckpt / "manifests").glob("*.claim"))[-1]
    path.write_bytes(b"{}")


def missing_results(ckpt: Path) -> None:
    shutil.rmtree(ckpt.parent / "sink" / "step=00000017")


def results_ahead(ckpt: Path) -> None:
    manifest = Folders(str(ckpt)).manifests.latest()
    assert manifest is not None
    folder = ckpt.parent / "sink" / "step=00000025"
    folder.mkdir()
    (folder / f"{manifest.job}~{manifest.epochs[-1].token}~rows.parquet").write_bytes(b"x")


def results_of_another(ckpt: Path) -> None:
    folder = ckpt.parent / "sink" / "step=00000025"
    folder.mkdir()
    (folder / "another~0123~rows.parquet").write_bytes(b"x")


def savepoint_of_nonsense(ckpt: Path) -> None:
    ms.open(ckpt).savepoint("s")
    (ckpt / "savepoints" / "s.json").write_bytes(b"nonsense")


LASTING: dict[Callable[[Path], None], tuple[str, str]] = {
    flipped_chunk: ("chunks", "checksum does not match"),
    missing_chunk: ("chunks", "is missing"),
    cut_manifest: ("manifests", "damaged"),
    claim_of_nonsense: ("claims", "damaged"),
    missing_results: ("sinks", "results of step 17 are missing"),
    results_ahead: ("sinks", "the sink has step 25"),
    results_of_another: ("sinks", "results of another job, another"),
    savepoint_of_nonsense: ("manifests", "damaged"),
}


@pytest.mark.parametrize("damage", LASTING, ids=lambda damage: damage.__name__)
def test_what_only_a_person_can_decide_is_said_and_left(
    ckpt: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(ckpt)
    before = content(ckpt.parent)
    check, problem = LASTING[damage]
    found = [one for one in examine(ckpt).findings if one.check == check and not one.harmless]
    assert found and problem in found[0].problem
    assert all(one.place and one.remedy for one in found)
    assert main(["doctor", str(ckpt), "--json"]) == 1
    out, err = capsys.readouterr()
    assert not json.loads(out)["well"] and "Remedy: " in err
    assert content(ckpt.parent) == before, "to look changes nothing"


def old_manifest_of_nonsense(ckpt: Path) -> None:
    flip(sorted((ckpt / "manifests").glob("*-*.json"))[-3])


def command_of_nonsense(ckpt: Path) -> None:
    CommandLog(ckpt / "commands").append(DropQuery("pairs"))
    (ckpt / "commands" / "000000001.json").write_bytes(b"nonsense")


def events_of_nonsense(ckpt: Path) -> None:
    sorted((ckpt / "events").glob("*.jsonl"))[-2].write_bytes(b"nonsense\n")


def loose_chunk(ckpt: Path) -> None:
    path = newest_chunk(ckpt)
    shutil.copy(path, path.with_name("00000003-loose.arrow"))


def unfinished_file(ckpt: Path) -> None:
    (ckpt / "store" / ".00000003-x.arrow.0-1-2.tmp").write_bytes(b"half")


def attempt_that_was_broken_off(ckpt: Path) -> None:
    stage(ckpt, Folders(str(ckpt)).manifests.read(19).epochs[-1].token, 19)


def attempt_of_a_former_epoch(ckpt: Path) -> None:
    former = Folders(str(ckpt)).manifests.read(19).epochs[-1].token
    Folders(str(ckpt)).manifests.rewind(19)
    stage(ckpt, former, 20)


def stage(ckpt: Path, epoch: str, step: int) -> None:
    folder = ckpt.parent / "sink" / "_staging" / epoch / f"step={step:08d}"
    folder.mkdir(parents=True)
    (folder / "rows-broken.parquet").write_bytes(b"half")


MENDED = {
    attempt_that_was_broken_off: "staged",
    attempt_of_a_former_epoch: "staged",
    old_manifest_of_nonsense: "manifests",
    command_of_nonsense: "commands",
    events_of_nonsense: "events",
    loose_chunk: "orphans",
    unfinished_file: "orphans",
}


@pytest.mark.parametrize("damage", MENDED, ids=lambda damage: damage.__name__)
def test_what_loses_nothing_is_mended(ckpt: Path, damage: Callable[[Path], None]) -> None:
    damage(ckpt)
    found = [one for one in examine(ckpt).findings if one.check == MENDED[damage]]
    assert found and all(one.mend is not None for one in found)
    done = examine(ckpt, repair=True)
    assert set(found) <= set(done.mended)
    assert done.is_well
    assert not [one for one in examine(ckpt).findings if one.check == MENDED[damage]]
    again = run(ckpt, range(20, 45), ckpt.parent / "sink")
    assert counted(again) and in_sink(ckpt.parent / "sink") == in_sink(whole(ckpt.parent))


def whole(folder: Path) -> Path:
    """The sink of a job that nothing happened to."""
    run(folder / "whole", range(45), folder / "whole sink")
    return folder / "whole sink"


def test_what_another_may_have_staged_is_only_named(ckpt: Path) -> None:
    stage(ckpt, "fedcba98", 19)
    (found,) = [one for one in examine(ckpt).findings if one.check == "staged"]
    assert "no epoch of this job" in found.problem and found.harmless and found.mend is None


def test_what_is_staged_for_the_newest_step_is_not_taken_away(ckpt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job ends before its sink has the step: the doctor leaves it, and the next start delivers it."""
    commit = FileSink.commit

    def failing(sink: FileSink, staged: StagedStep) -> None:
        assert staged.step < 20
        commit(sink, staged)

    with monkeypatch.context() as patched:
        patched.setattr(FileSink, "commit", failing)
        with pytest.raises(ms.UndeliveredError, match="AssertionError"):
            run(ckpt, range(20, 21), ckpt.parent / "sink")
    assert not [one for one in examine(ckpt, repair=True).findings if one.check == "staged"]
    run(ckpt, range(21, 45), ckpt.parent / "sink")
    assert in_sink(ckpt.parent / "sink") == in_sink(whole(ckpt.parent))


def test_what_was_given_up_is_taken_out_of_the_sink(ckpt: Path) -> None:
    manifests = Folders(str(ckpt)).manifests
    manifests.rewind(15)  # The sinks were not told.
    assert [one.check for one in examine(ckpt).findings if not one.harmless] == ["sinks"]
    assert examine(ckpt, repair=True).is_well
    stamp = FileSink(str(ckpt.parent / "sink")).newest("pairs")
    assert stamp is not None and stamp.step == 15


def test_a_missing_command_is_noted(ckpt: Path) -> None:
    log = CommandLog(ckpt / "commands")
    log.append(DropQuery("x")), log.append(DropQuery("y"))
    (ckpt / "commands" / "000000001.json").unlink()
    (found,) = [one for one in examine(ckpt).findings if one.check == "commands"]
    assert "command 1 is missing" in found.problem and found.harmless


def test_a_job_of_spark_whose_offsets_are_elsewhere(ckpt: Path) -> None:
    """The manifest says Spark runs the job, and Spark's log is of other steps."""
    from dataclasses import replace

    log = Folders(str(ckpt)).manifests
    manifest = log.latest()
    assert manifest is not None
    log.publish(replace(manifest, published=replace(manifest.published, host="spark")))
    assert "Spark's log does not record where step 19, the newest" in dict(harm(examine(ckpt)))["spark"]
    offsets = ckpt / "spark" / "epoch=000001" / "offsets"
    offsets.mkdir(parents=True)
    for step in (18, 19):
        (offsets / str(step)).touch()
    assert not [one for one in harm(examine(ckpt)) if one[0] == "spark"]
    (offsets / "27").touch()
    assert "Spark has begun batch 27" in dict(harm(examine(ckpt)))["spark"]


def test_a_saved_engine_is_examined_too(tmp_path: Path) -> None:
    engine = ms.Engine()
    engine.create_stream("A", "k BIGINT, ts TIMESTAMP, v BIGINT", timestamp="ts")
    engine.add_query("q", "SELECT x.k FROM A x, A y WHERE x.k = y.k WINDOW 5 SECONDS")
    engine.push({"A": rows(0)["A"]})
    engine.save(tmp_path / "saved")
    assert examine(tmp_path / "saved").findings == ()
    flip(newest_chunk(tmp_path / "saved"))
    assert harm(examine(tmp_path / "saved")) or examine(tmp_path / "saved").findings


def test_every_check_says_what_it_holds() -> None:
    assert [check.__name__ for check in CHECKS] == [
        "manifests", "chunks", "lanes", "orphans", "commands", "events", "sources", "files", "claims", "sinks",
        "rejected", "staged", "spark", "tidying",
    ]  # fmt: skip
    assert all(check.__doc__ for check in CHECKS)


def test_a_source_of_spark_whose_log_is_behind_the_offsets_is_found(tmp_path: Path) -> None:
    log = tmp_path / "spark" / "epoch=000001"
    for folder in ("offsets", "commits", "sources/0", "sources/1"):
        (log / folder).mkdir(parents=True)
    Folders(str(tmp_path)).manifests.publish(Manifest("j", 12, epochs=(Epoch(1, "aaaa", 0),)))
    (log / "offsets" / "12").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":12}\n{"logOffset":2}\n-\n')
    for name in ("0/9.compact", "0/10", "0/11", "0/12", "1/0", "1/1", "1/2", "1/.2.crc"):
        (log / "sources" / name).write_text("v1\n")

    def places() -> list[str]:
        return [one.place for one in examine(tmp_path).findings if "Spark's log of a source" in one.problem]

    assert places() == []
    (log / "sources" / "0" / "11").unlink()
    (log / "sources" / "1" / "2").unlink()
    assert places() == [f"{log}/sources/0/11", f"{log}/sources/1/2"]
    (log / "sources" / "0" / "9.compact").unlink()
    assert places()[0] == f"{log}/sources/0/0"


def test_notes_of_files_that_do_not_read_are_found(ckpt: Path) -> None:
    (ckpt / "sources" / "A").mkdir(parents=True)
    (ckpt / "sources" / "A" / "000001-000000000003.jsonl").write_text('{"file": 7}\n')
    assert harm(examine(ckpt)) == [("sources", "the notes of files that were read cannot be read: ValueError")]


def test_what_is_in_the_way_of_tidying_is_said(ckpt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    savepoint_of_nonsense(ckpt)
    found = [one.problem for one in examine(ckpt).findings if one.check == "tidying"]
    assert len(found) == 1 and found[0].startswith("the job removes no old files")
    ms.open(ckpt).drop_savepoint("s")
    assert not [one for one in examine(ckpt).findings if one.check == "tidying"]
    monkeypatch.setattr(event_log, "STEPS_KEPT", 1)
    (late,) = [one for one in examine(ckpt).findings if one.check == "tidying"]
    assert "events of steps of long ago are there still" in late.problem
    assert late.problem.endswith("000001-000000000000.jsonl (1 in all)"), "the next file has those of step 8 too"


@pytest.mark.parametrize("data", [b"", b"half", b"PAR1 and what is not a file of its kind PAR1"])
def test_a_damaged_file_of_late_rows_is_found_and_told(tmp_path: Path, data: bytes) -> None:
    with ms.Engine(checkpoint=tmp_path) as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("q", "SELECT A.k FROM A")
        for time in ("2020-01-01", "2010-01-01", "never"):
            engine.push({"A": [{"k": 1, "ts": time}]})
        assert (engine.late["A"].num_rows, engine.dead_letters["A"].num_rows) == (1, 1)
        for kind in ("late", "dead_letters"):  # What an editor and a file system leave is not a file of these.
            next((tmp_path / kind).rglob("step=*")).joinpath("._rows.parquet").write_bytes(b"not ours")
        assert examine(tmp_path).is_well
        for kind in ("late", "dead_letters"):
            next((tmp_path / kind).rglob("[!.]*.parquet")).write_bytes(data)
        for kind in ("late", "dead_letters"):
            with pytest.raises(ms.SinkError, match=f"the file is damaged.*{kind}/A/.*restore the file"):
                getattr(engine, kind)
        assert [check for check, _ in harm(examine(tmp_path))] == ["rejected", "rejected"]


def test_rows_in_a_wrong_lane_are_found_and_what_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that a spread gave back by another dealing: going back to before it, as the doctor says, mends the job."""
    ckpt, sink = tmp_path / "ckpt", tmp_path / "sink"
    run(ckpt, range(2), sink)
    own = taken_over.slots
    with start(ckpt, sink) as engine:
        engine.spread("pairs", "psp", nodes=2)
        engine.push(rows(2))
        with monkeypatch.context() as wrong:
            wrong.setattr(taken_over, "slots", lambda *given: own(*given) + 1)
            wrong.setattr(levels, "validate", lambda *given: None)
            engine.spread("pairs", "off")
            for step in range(3, 5):
                engine.push(rows(step))
    (found,) = [one for one in examine(ckpt).findings if not one.harmless]
    assert found.check == "lanes" and found.place == "query pairs" and "since step 3" in found.problem
    assert found.remedy.startswith("rewind to step 2, ")
    ms.open(ckpt).rewind(2)
    assert examine(ckpt).is_well
    run(ckpt, range(3, 6), sink)  # The command is still in the log, and taken again.
    assert examine(ckpt).is_well
    assert in_sink(sink) == counted(run(tmp_path / "undisturbed", range(6)))
