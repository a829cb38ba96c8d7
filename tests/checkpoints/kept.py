"""How checkpoints are kept: for each course one archive, with what the code that wrote it answered as it went on."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FORMAT = 2
"""The format of the checkpoints that are kept."""

CHECKPOINT, RECORD, NOTES = "checkpoint", "record", "notes.json"
STEP = "step of the answer"
ROOT = "/kept"
"""The folder in which a kept job seems to have run, by the paths that its checkpoint names."""

_SEALED = re.compile(rb'\{"format":(\d),"crc32":"([0-9a-f]{8})","value":(.*)\}\n', re.DOTALL)
"""A file that carries its format and its checksum."""

Outputs = Mapping[str, Mapping[int, pa.Table]]
"""For each query its answer in every step in which it ran."""


@dataclass(frozen=True)
class Kept:
    """An unpacked archive: the checkpoint's folder, the answers of the run that was not disturbed, and notes on it."""

    checkpoint: Path
    answers: Outputs
    notes: Mapping[str, Any]


def archive(name: str, version: int = FORMAT) -> Path:
    """Where the checkpoint of a course is kept, in a format."""
    return Path(__file__).parent / f"format_{version}" / f"{name}.tar.xz"


def pack(target: Path, folder: Path, answers: Outputs, notes: Mapping[str, Any]) -> None:
    """Keep a folder, whose subfolder `checkpoint` is the checkpoint; equal content makes equal archives."""
    for query, steps in answers.items():
        (folder / RECORD).mkdir(exist_ok=True)
        whole = [t.append_column(STEP, pa.array([step] * t.num_rows, pa.int64())) for step, t in steps.items()]
        table = pa.concat_tables(whole).replace_schema_metadata({"steps": json.dumps(list(steps))})
        # The archive packs better what is not packed yet.
        pq.write_table(table, folder / RECORD / f"{query}.parquet", compression="none", use_dictionary=False)
    (folder / NOTES).write_text(json.dumps(notes, indent=1))
    target.parent.mkdir(exist_ok=True)
    with tarfile.open(target, "w:xz", preset=9) as tar:
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


def archives() -> list[tuple[int, str]]:
    """Everything that is kept: formats and names."""
    paths = sorted(Path(__file__).parent.glob("format_*/*.tar.xz"))
    return [(int(path.parent.name.removeprefix("format_")), path.name.removesuffix(".tar.xz")) for path in paths]


def unpack(name: str, folder: Path, version: int = FORMAT) -> Kept:
    """Put what is kept into a folder."""
    content, answers = _content(name, version)
    for path in {folder / path if held is None else (folder / path).parent for path, (_, held) in content.items()}:
        path.mkdir(parents=True, exist_ok=True)
    for path, (written, held) in content.items():
        if held is not None:
            (folder / path).write_bytes(held)
            os.utime(folder / path, (written, written))
    return Kept(folder / CHECKPOINT, answers, json.loads((folder / NOTES).read_text()))


@cache
def _content(name: str, version: int) -> tuple[Mapping[str, tuple[float, bytes | None]], Outputs]:
    """What is in an archive, read once: by path the time and the bytes, none of a folder; and the answers."""
    content: dict[str, tuple[float, bytes | None]] = {}
    with tarfile.open(archive(name, version)) as tar:
        for member in tar:
            held = tar.extractfile(member)
            content[member.name] = member.mtime, None if held is None else held.read()
    answers = {
        Path(path).stem: _by_step(pq.read_table(pa.BufferReader(held)))
        for path, (_, held) in sorted(content.items())
        if Path(path).parent == Path(RECORD) and held is not None
    }
    return content, answers


def relocate(folder: Path, old: str, new: str) -> None:
    """Make a job's checkpoint one of a job that ran in another folder: paths are named in it, also by Spark."""
    for path in [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".arrow", ".crc")]:
        content = path.read_bytes()
        moved = content.replace(old.encode(), new.encode())
        if moved != content:
            sealed = _SEALED.fullmatch(moved)
            if sealed:
                moved = b'{"format":%b,"crc32":"%08x","value":%b}\n' % (sealed[1], zlib.crc32(sealed[3]), sealed[3])
            path.write_bytes(moved)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Spark's own checksum; it can do without.


def _by_step(table: pa.Table) -> dict[int, pa.Table]:
    steps: Sequence[int] = json.loads(table.schema.metadata[b"steps"])
    plain = table.drop_columns([STEP]).replace_schema_metadata(None)
    return {step: plain.filter(pa.array([s == step for s in table[STEP].to_pylist()], pa.bool_())) for step in steps}
