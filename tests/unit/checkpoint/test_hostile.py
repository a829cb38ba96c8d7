"""A checkpoint that somebody has written to do harm runs nothing, reads nothing else and removes nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.event_log import EventLog, FilesRead
from midstream.checkpoint.folders import Folders
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.commands.drop_query import DropQuery
from midstream.model import allowed
from midstream.model.codec import encode
from midstream.model.manifest import ChunkRef, Manifest, QueryEntry
from midstream.model.time_line import Epoch, TimeLine
from midstream.pipeline.doctor import examine
from midstream.pipeline.outputs import Outputs
from midstream.sinks import FileSink
from midstream.storage.disk import seal, unseal
from midstream.storage.files import FileStore
from midstream.storage.local import LocalStorage
from tests.unit.building import unbound

SCHEMA = "k BIGINT, ts TIMESTAMP"
SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
PATHS = ("../../outside", "/etc/outside", "a/../../b", "..", "a/b", "a\0b")

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    engine = ms.Engine()
    for name in "AB":
        engine.create_stream(name, SCHEMA, timestamp="ts")
    engine.add_query("q", SQL)
    rows = pa.table({"k": [1, 2], "ts": pa.array([0, 1], pa.timestamp("us"))})
    engine.push({"A": rows, "B": rows})
    engine.save(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.fixture
def harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that can be imported, and leaves a file where it is."""
    (tmp_path / "code").mkdir()
    done = tmp_path / "harm.done"
    code = f"from pathlib import Path\nPath({str(done)!r}).touch()\n"
    code += "class Evil:\n    def __init__(self, **options): pass\n    def feed(self, rows, mark): return rows\n"
    code += "    def snapshot(self): return None\n    def restore(self, snapshot): pass\n"
    (tmp_path / "code" / "harmful_module.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path / "code")
    monkeypatch.setattr(allowed, "_OPERATORS", set())
    monkeypatch.delitem(sys.modules, "harmful_module", raising=False)
    return done


def rewrite(saved: Path, change: Change) -> None:
    """Change the manifest, with the right checksum."""
    (path,) = (saved / "manifests").glob("*.json")
    value = unseal(path.read_bytes(), "", "")
    change(value)
    path.write_bytes(seal(value))


def operated(name: str) -> Change:
    def change(value: dict[str, Any]) -> None:
        entry = value["queries"]["q"]
        for field in ("chain", "demands"):
            entry.pop(field, None)
        entry["operator"] = {"class": name, "options": {"command": "touch"}}

    return change


def test_a_class_that_only_the_checkpoint_names_is_not_imported(saved: Path, harm: Path) -> None:
    rewrite(saved, operated("harmful_module:Evil"))
    engine = ms.Engine.load(saved)
    with pytest.raises(
        ms.QueryError, match=r"this program does not allow it.*allow_operators\('harmful_module:Evil'\)"
    ):
        engine.push({})
    assert not harm.exists() and "harmful_module" not in sys.modules


def test_what_the_program_allows_is_made(saved: Path, harm: Path) -> None:
    rewrite(saved, operated("harmful_module:Evil"))
    engine = ms.Engine.load(saved)
    ms.allow_operators("harmful_module:Evil")
    engine.push({})
    assert harm.exists(), "the module would have done its harm, were it let"


@pytest.mark.parametrize("name", ["os:system", "subprocess:Popen", "builtins:exec", "pathlib:Path", "os:path.join"])
def test_what_is_imported_but_no_operator_is_not_called(saved: Path, name: str) -> None:
    rewrite(saved, operated(name))
    with pytest.raises(ms.QueryError, match="this program does not allow it"):
        ms.Engine.load(saved).push({})


def test_readers_import_nothing(saved: Path, harm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(saved, operated("harmful_module:Evil"))
    for command in (["status"], ["explain"], ["drop"]):
        main([command[0], str(saved), *(["q"] if command[0] != "status" else [])])
    capsys.readouterr()
    assert not harm.exists() and "harmful_module" not in sys.modules


def test_a_command_in_the_log_imports_nothing(saved: Path, harm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = {"command": "add_query", "query": "evil", "sql": SQL, "operator": {"class": "harmful_module:Evil"}}
    (saved / "commands").mkdir()
    (saved / "commands" / "000000001.json").write_bytes(seal(command))
    assert main(["status", str(saved)]) == 0
    assert main(["drop", str(saved), "q"]) == 0
    assert not harm.exists() and "harmful_module" not in sys.modules


def test_a_job_file_imports_nothing(tmp_path: Path, harm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job.toml"
    job.write_text(
        f'checkpoint = "{tmp_path}/ckpt"\n[streams.A]\nformat = "parquet"\npath = "{tmp_path}/in"\n'
        f'schema = "{SCHEMA}"\ntimestamp = "ts"\n'
        '[queries.q]\nsql = "SELECT A.k FROM A [RANGE 5 SECONDS]"\noperator = "harmful_module:Evil"\n'
        'sink = { format = "parquet", path = "out" }\n'
    )
    assert main(["run", str(job), "--once"]) == 2
    assert "--allow-operator harmful_module:Evil" in capsys.readouterr().err
    assert not harm.exists() and "harmful_module" not in sys.modules


@pytest.mark.parametrize("path", PATHS)
def test_names_that_lead_elsewhere_are_refused(saved: Path, path: str) -> None:
    def job(value: dict[str, Any]) -> None:
        value["job"] = path

    def epoch(value: dict[str, Any]) -> None:
        value["epochs"] = [{"number": 1, "token": path, "since": 0}]

    def staged(value: dict[str, Any]) -> None:
        value["published"]["files"] = [["results", "q", path, 1]]

    for change in (job, epoch, staged):
        before = next((saved / "manifests").glob("*.json")).read_bytes()
        rewrite(saved, change)
        with pytest.raises(ms.CheckpointError, match="leads elsewhere"):
            ms.Engine.load(saved)
        next((saved / "manifests").glob("*.json")).write_bytes(before)


@pytest.mark.parametrize("output", [["../../outside", "A"], ["late", "../outside"], ["results", "A"]])
def test_files_of_what_the_job_does_not_have_are_refused(saved: Path, output: list[Any]) -> None:
    def change(value: dict[str, Any]) -> None:
        value["published"]["files"] = [[*output, "x.parquet", 1]]

    rewrite(saved, change)
    with pytest.raises(ms.CheckpointError, match="which the job does not have"):
        ms.Engine.load(saved)


@pytest.mark.parametrize("path", PATHS)
def test_a_chunk_elsewhere_is_not_read(saved: Path, path: str) -> None:
    with pytest.raises(ms.CheckpointError, match="cannot be the name of a chunk"):
        FileStore(saved / "store").get(ChunkRef(path, 1, 1, 1))


@pytest.mark.parametrize("name", ["..", "../..", "/etc", ".", "a/b"])
def test_a_query_of_any_name_has_a_folder_of_its_own(tmp_path: Path, name: str) -> None:
    folders = Folders(str(tmp_path))
    for path in (folders.results(name), folders.rejected("late", name), folders.scratch(name).url):
        parent = Path(path).resolve().parent
        assert parent.parent == tmp_path.resolve() and parent.name in ("results", "late", "staging")


def test_going_back_takes_nothing_of_another_job(tmp_path: Path) -> None:
    """A manifest that names another job's results as its sink."""
    others = tmp_path / "others" / "step=00000005"
    others.mkdir(parents=True)
    (others / "theirs~aaaa~0-b.parquet").write_bytes(b"x")
    (others / "ours~aaaa~0-b.parquet").write_bytes(b"x")
    sink = {"path": str(tmp_path / "others"), "format": "parquet"}
    entry = QueryEntry(unbound(SQL), "(A B)", 0, sink=sink)
    manifest = Manifest("ours", 2, queries={"q": entry}, epochs=(Epoch(1, "aaaa", 0),))
    Outputs(Folders(str(tmp_path / "ckpt")), {}).forget_after(manifest)
    assert [path.name for path in others.iterdir()] == ["theirs~aaaa~0-b.parquet"]


def test_files_without_a_stamp_are_never_the_job_s_own(tmp_path: Path) -> None:
    """As files of a table partitioned by `step` are, which a manifest names as its sink."""
    sink = FileSink(str(tmp_path / "sink"))
    folder = tmp_path / "sink" / "step=00000005"
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_bytes(b"x")
    (folder / "ours~aaaa~0.parquet").write_bytes(b"x")
    epochs = (Epoch(1, "aaaa", 0), Epoch(2, "bbbb", 3, abandoned=5))
    queries = {"q": QueryEntry(unbound(SQL), "(A B)", 0, sink=sink.to_json())}
    Outputs(Folders(str(tmp_path / "ckpt")), {}).forget_after(Manifest("ours", 2, queries=queries, epochs=epochs))
    assert [path.name for path in folder.glob("*")] == ["part-0.parquet"]


def test_nothing_is_removed_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "keep").write_bytes(b"x")
    (tmp_path / "sink").mkdir()
    (tmp_path / "sink" / "step=00000009").symlink_to(precious)
    with pytest.raises(ms.SinkError, match="link"):
        FileSink(str(tmp_path / "sink")).forget_after("q", 3)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "gone").symlink_to(precious)
    LocalStorage(tmp_path / "root").remove_folder("gone")
    assert (precious / "keep").read_bytes() == b"x"


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("body", [DEEP, b"9" * 10_000, b"{", b'{"format":[]}', b"null", b'{"format":4,"job":{}}'])
def test_a_manifest_of_nonsense_is_refused(saved: Path, body: bytes) -> None:
    (path,) = (saved / "manifests").glob("*.json")
    path.write_bytes(b'{"format":4,"crc32":"%08x","value":%b}\n' % (crc32(body), body))
    with pytest.raises(ms.CheckpointError):
        ManifestLog(saved / "manifests").latest()
    (saved / "commands").mkdir()
    (saved / "commands" / "000000001.json").write_bytes(path.read_bytes())
    with pytest.raises(ms.CheckpointError):
        CommandLog(saved / "commands").after(0)


def test_events_of_nonsense_are_refused(tmp_path: Path) -> None:
    (tmp_path / "000000-000000000003.jsonl").write_bytes(DEEP + b"\n")
    with pytest.raises(ms.CheckpointError, match="cannot be read"):
        list(EventLog(LocalStorage(tmp_path)).read(TimeLine(""), 3))


@pytest.mark.parametrize("lanes", [0, -1, 10**12])
def test_lanes_without_number_are_refused(saved: Path, lanes: int) -> None:
    rewrite(saved, lambda value: value.update(lanes=lanes))
    with pytest.raises(ms.CheckpointError, match="lanes"):
        ms.Engine.load(saved)


def test_a_query_of_endless_depth_ends_with_a_message(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def deep(value: dict[str, Any]) -> None:
        condition = [["A", "k", "bool"], *[["bool", "not", 1]] * 100_000]
        value["queries"]["q"]["query"]["selections"] = [["A", condition]]

    rewrite(saved, deep)
    assert main(["explain", str(saved), "q"]) in (1, 2)
    assert capsys.readouterr().err.startswith("midstream: ")


def test_a_chunk_that_lies_about_its_offsets_is_refused(tmp_path: Path) -> None:
    """Its checksum is right; text whose offsets lead out of its data would be read from anywhere in memory."""
    store = FileStore(tmp_path)
    name, size, _ = store.put("a/1-b", pa.record_batch({"t": ["x" * 77]}))
    path = tmp_path / f"{name}.arrow"
    honest, lying = (pa.array([0, end], pa.int32()).buffers()[1].to_pybytes()[:8] for end in (77, 1_000_000))
    before, _, after = path.read_bytes().rpartition(honest)
    path.write_bytes(before + lying + after)
    with pytest.raises(ms.CheckpointError, match="cannot be read"):
        store.get(ChunkRef(name, 1, size, crc32(path.read_bytes())))


def test_no_arrow_type_is_unpickled(tmp_path: Path) -> None:
    """Arrow's own types of Python were made by `pickle`, from the metadata of a schema."""
    metadata = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": b"cos\nsystem\n."}
    schema = pa.schema([pa.field("k", pa.int64(), metadata=metadata)])
    store = FileStore(tmp_path)
    name, size, checksum = store.put("a/1-b", pa.RecordBatch.from_arrays([pa.array([1])], schema=schema))
    assert FileStore(tmp_path).get(ChunkRef(name, 1, size, checksum)).to_pydict() == {"k": [1]}


def test_nothing_in_the_package_unpickles_or_evaluates() -> None:
    sources = Path(ms.__file__).parent.rglob("*.py")
    words = ("import pickle", "pickle.load", "cloudpickle", " eval(", " exec(", "yaml.load", "marshal")
    assert not [f"{path}: {word}" for path in sources for word in words if word in path.read_text()]


def test_an_honest_checkpoint_is_none_of_this(saved: Path) -> None:
    assert Checkpoint.open(saved).report().queries["q"].name == "q"
    assert json.loads(json.dumps(encode(Epoch(1, "0a1b2c3d", 0))))["token"] == "0a1b2c3d"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("read", ["a"]),
        ("read", {"A": "/in/a.parquet"}),
        ("read", {"A": [7]}),
        ("files", {"results": 1}),
        ("files", [["results", ["q"], "x", 1]]),
        ("declared", {}),
        ("declared", {"lanes": None, "queries": {"q": "SELECT"}}),
        ("declared", {"lanes": "2", "queries": {}}),
        ("declared", {"lanes": 2, "optimizer": {"q": "auto"}}),
        ("declared", {"tables": {"T": 7}}),
        ("host", ["spark"]),
        ("spark", {"texts": []}),
        ("spark", {"texts": {}, "objects": {"metadata": "../../outside"}}),
        ("events", [1]),
        ("late", [1]),
    ],
)
def test_what_no_job_publishes_is_refused(saved: Path, key: str, value: Any) -> None:
    rewrite(saved, lambda manifest: manifest.update(published={**manifest["published"], key: value}))
    with pytest.raises(ms.CheckpointError, match=r"publishe|leads elsewhere"):
        Checkpoint.open(saved).manifest()


@pytest.mark.parametrize("field", ["step", "last_command", "lanes"])
@pytest.mark.parametrize("number", ["1", 10**30, -(10**30), 1.5, None, [1]])
def test_numbers_that_no_job_comes_to_are_refused(saved: Path, field: str, number: object) -> None:
    rewrite(saved, lambda manifest: manifest.update({field: number}))
    with pytest.raises(ms.CheckpointError, match=field.replace("_", " ")):
        Checkpoint.open(saved).manifest()


@pytest.mark.parametrize("number", [10**7, 10**18, 10**100])
def test_a_command_far_beyond_the_others_ends_with_a_message(saved: Path, number: int) -> None:
    log = CommandLog(saved / "commands")
    log.append(DropQuery("q"))
    (saved / "commands" / f"{number:09d}.json").write_bytes(seal(encode(DropQuery("q"))))
    missing = f"command {number} exists, but {number - 2} commands before it are missing"
    with pytest.raises(ms.CheckpointError, match=missing):
        log.after(0)
    found = [one for one in examine(saved, repair=True).findings if one.check == "commands"]
    assert [one.mend is not None for one in found] == [True]
    assert log.after(0) == ((1, DropQuery("q")),), "the doctor has moved it away"


@pytest.mark.parametrize("note", ["7", "[]", '{"file": 7}', "{}"])
def test_notes_of_another_shape_are_refused(tmp_path: Path, note: str) -> None:
    (tmp_path / "000000-000000000003.jsonl").write_text(f"{note}\n")
    with pytest.raises(ms.CheckpointError, match="cannot be read"):
        FilesRead(LocalStorage(tmp_path)).by_file(TimeLine(""), 3)
    with pytest.raises(ms.CheckpointError, match="cannot be read"):
        list(EventLog(LocalStorage(tmp_path)).read(TimeLine(""), 3))
