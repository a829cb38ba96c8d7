"""How checkpoints are kept: for each course one archive, with what the code that wrote it answered as it went on."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent / "format_2"
CHECKPOINT, ANSWERS, NOTES = "checkpoint", "answers", "notes.json"
STEP = "step of the answer"

Outputs = Mapping[str, Mapping[int, pa.Table]]
"""For each query its answer in every step in which it ran."""


@dataclass(frozen=True)
class Kept:
    """An unpacked archive: the checkpoint's folder, the answers of the run that was not disturbed, and notes on it."""

    checkpoint: Path
    answers: Outputs
    notes: Mapping[str, Any]


def archive(name: str) -> Path:
    """Where the checkpoint of a course is kept."""
    return FOLDER / f"{name}.tar.xz"


def pack(name: str, folder: Path, answers: Outputs, notes: Mapping[str, Any]) -> None:
    """Keep a folder, whose subfolder `checkpoint` is the checkpoint; equal content makes equal archives."""
    for query, steps in answers.items():
        (folder / ANSWERS).mkdir(exist_ok=True)
        whole = [t.append_column(STEP, pa.array([step] * t.num_rows, pa.int64())) for step, t in steps.items()]
        table = pa.concat_tables(whole).replace_schema_metadata({"steps": json.dumps(list(steps))})
        # The archive packs better what is not packed yet.
        pq.write_table(table, folder / ANSWERS / f"{query}.parquet", compression="none", use_dictionary=False)
    (folder / NOTES).write_text(json.dumps(notes, indent=1))
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(archive(name), "w:xz", preset=9) as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file() or not any(path.iterdir())):
            info = tarfile.TarInfo(str(path.relative_to(folder)))
            info.mtime = 1_600_000_000
            if path.is_dir():
                info.type = tarfile.DIRTYPE
                info.mode = 0o755
                tar.addfile(info)
            else:
                info.size = path.stat().st_size
                tar.addfile(info, io.BytesIO(path.read_bytes()))


def unpack(name: str, folder: Path) -> Kept:
    """Put what is kept into a folder."""
    with tarfile.open(archive(name)) as tar:
        tar.extractall(folder, filter="data")
    answers = {path.stem: _by_step(pq.read_table(path)) for path in sorted((folder / ANSWERS).glob("*.parquet"))}
    return Kept(folder / CHECKPOINT, answers, json.loads((folder / NOTES).read_text()))


def _by_step(table: pa.Table) -> dict[int, pa.Table]:
    steps: Sequence[int] = json.loads(table.schema.metadata[b"steps"])
    plain = table.drop_columns([STEP]).replace_schema_metadata(None)
    return {step: plain.filter(pa.array([s == step for s in table[STEP].to_pylist()], pa.bool_())) for step in steps}
