"""A query gets another sink while a step is not delivered yet: its rows are in the sink they were meant for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.checkpoint.folders import Folders
from midstream.model.manifest import Manifest, Published, QueryEntry
from midstream.model.schema import StreamSchema
from midstream.model.time_line import Epoch
from midstream.pipeline.outputs import RESULTS, JobOutput, Outputs
from midstream.sinks import FileSink, FunctionSink, Sink, StagedStep
from tests.unit.building import unbound
from tests.unit.pipeline.test_opened import in_sink

ROWS = pa.table({"k": [1, 2]})


class Other(Sink):
    """A sink that has its files staged in the checkpoint."""

    name = "other"

    def __init__(self) -> None:
        self.taken: list[int] = []

    def to_json(self) -> dict[str, Any]:
        return {"type": self.name}

    def write(self, staged: StagedStep) -> None:
        self.taken.append(staged.step)


def committed(ckpt: Path, sink: Sink) -> Manifest:
    """The manifest of a step that is staged for a sink and not delivered."""
    outputs = Outputs(Folders(str(ckpt)), {"q": sink})
    queries = {"q": QueryEntry(unbound("SELECT A.k FROM A"), "A", 0)}
    before = Manifest("job", -1, queries=queries, epochs=(Epoch(1, "first", 0),))
    manifest = outputs.named(replace(before, step=0))
    files = outputs.stage_tables(before, manifest, {JobOutput(RESULTS, "q"): ROWS}, "attempt1")
    return replace(manifest, published=Published(files=files))


@pytest.mark.parametrize(
    "make", [lambda root: Other(), lambda root: FileSink(str(root / "new"))], ids=["kept", "files"]
)
def test_the_sink_of_the_manifest_gets_the_step(tmp_path: Path, make: Callable[[Path], Sink]) -> None:
    manifest = committed(tmp_path / "ckpt", FileSink(str(tmp_path / "old")))
    changed = make(tmp_path)
    outputs = Outputs(Folders(str(tmp_path / "ckpt")), {"q": changed})
    for _ in range(2):
        outputs.commit(manifest)
        assert in_sink(tmp_path / "old") == {(1,): 1, (2,): 1}
    assert not (tmp_path / "new").exists() and not getattr(changed, "taken", [])
    assert outputs.named(manifest).queries["q"].sink == changed.to_json(), "what comes after goes there"


def test_a_function_must_be_named_once_more(tmp_path: Path) -> None:
    """Unless it has had the step."""
    taken: list[int] = []

    def function(rows: pa.Table, step: int, query: str) -> None:
        taken.append(step)

    manifest = committed(tmp_path / "ckpt", FunctionSink(function))
    changed = Outputs(Folders(str(tmp_path / "ckpt")), {"q": FileSink(str(tmp_path / "new"))})
    with pytest.raises(ms.SinkError, match="which this program does not have") as caught:
        changed.commit(manifest)
    assert "name the function" in caught.value.remedy
    Outputs(Folders(str(tmp_path / "ckpt")), {"q": FunctionSink(lambda *given: function(*given))}).commit(manifest)
    assert taken == [0]
    changed.commit(manifest)
    assert not list(tmp_path.glob("new/step=*"))


def test_what_a_driver_staged_that_was_killed_amid_the_first_step_of_a_query_is_removed(tmp_path: Path) -> None:
    """No manifest named the query when the next driver began."""
    sink = FileSink(str(tmp_path / "new"))
    committed(tmp_path / "ckpt", sink)
    folders = Folders(str(tmp_path / "ckpt"))
    (left,) = tmp_path.glob("new/_staging/first/step=*")
    stream = StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts")
    before = Manifest("job", -1, streams={"A": stream}, epochs=(Epoch(1, "first", 0), Epoch(2, "second", 0)))
    after = replace(
        before, step=0, queries={"q": QueryEntry(unbound("SELECT A.k FROM A"), "A", 0, sink=sink.to_json())}
    )
    for begin in (
        lambda one: one.stage(before, after),
        lambda one: one.stage_tables(before, after, {}, "attempt1"),
    ):
        left.mkdir(parents=True, exist_ok=True)
        (left / "rows").write_text("left")
        begin(Outputs(folders, {}))
        assert not left.exists()
