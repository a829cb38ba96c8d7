"""A stream's dead letters go to a folder of files as well: each row once, also where a step is cut short."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.sinks import FileSink, StagedStep


def push(root: Path, format: str, *keys: int) -> None:
    """Push two rows for each key, of which the second one has no time, in a run of its own."""
    aside = ms.sinks.files(root / "aside", format)
    with ms.Engine(checkpoint=root / "ckpt") as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts", dead_letters=aside)
        if "q" not in engine.report().queries:
            engine.add_query("q", "SELECT k FROM A", sink=ms.sinks.files(root / "out"))
        for k in keys:
            engine.push({"A": [{"k": k, "ts": datetime(2024, 1, 1, 0, k)}, {"k": -k, "ts": None}]})


def found(root: Path, format: str) -> list[int]:
    files = sorted((root / "aside").glob(f"step=*/*.{format}"))
    if format == "json":
        return [json.loads(line)["k"] for file in files for line in file.read_text().splitlines()]
    read = pq.read_table if format == "parquet" else pyarrow.csv.read_csv
    return [k for file in files for k in read(file)["k"].to_pylist()]


@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_dead_letters_are_in_the_folder_and_in_the_checkpoint(format: str, tmp_path: Path) -> None:
    push(tmp_path, format, 1, 2)
    push(tmp_path, format, 3)
    assert found(tmp_path, format) == [-1, -2, -3]
    kept = sorted((tmp_path / "ckpt" / "dead_letters" / "A").rglob("*.parquet"))
    assert [k for file in kept for k in pq.read_table(file)["k"].to_pylist()] == [-1, -2, -3]
    files = {path for path in (tmp_path / "aside").rglob("*") if path.is_file()}
    assert files == set((tmp_path / "aside").glob("step=*/*")), "nothing is left where files are staged"


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_each_is_there_once_after_a_step_that_was_cut_short(
    calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job ends before or after the commit of one of the folders: results, `aside`, the checkpoint's."""
    push(tmp_path, "parquet", 1)
    write, done = FileSink.write, [0]

    def dies(self: FileSink, staged: StagedStep) -> Any:
        if staged.step == 1:
            if done[0] == calls:
                raise KeyboardInterrupt
            done[0] += 1
        return write(self, staged)

    with monkeypatch.context() as patched:
        patched.setattr(FileSink, "write", dies)
        if calls < 3:
            with pytest.raises(KeyboardInterrupt):
                push(tmp_path, "parquet", 2)
        else:
            push(tmp_path, "parquet", 2)
    push(tmp_path, "parquet", 3)
    assert found(tmp_path, "parquet") == [-1, -2, -3]
    assert sorted(pq.read_table(tmp_path / "out")["k"].to_pylist()) == [1, 2, 3]
