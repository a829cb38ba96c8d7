"""A checkpoint of another format is refused, by whatever is asked of it, before anything in it is touched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.model.errors import OtherFormatError

SEALED = re.compile(rb'\{"midstream":"[^"]+","format":\d+,"crc32":"[0-9a-f]{8}","value":(.*)\}\n', re.DOTALL)
FORMATS = [("0.1.0", 1), ("0.1.0", 2), ("0.1.0", 3), ("0.1.0", 4), ("0.1.0", 5), ("0.3.0", 2), ("1.2.0rc1", 1)]
JOB = """
checkpoint = "ckpt"
[streams.A]
format = "parquet"
path = "in"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
[queries.q]
sql = "{sql}"
sink = {{ path = "answers" }}
"""
SQL = "SELECT x.k FROM A x, A y WHERE x.k = y.k WINDOW 20 SECONDS"


def rewritten(folder: Path, since: str, number: int) -> None:
    """Give every sealed file of a checkpoint the head of another format."""
    head = f'{{"format":{number}' if since == "0.1.0" else f'{{"midstream":"{since}","format":{number}'
    for path in folder.rglob("*"):
        found = SEALED.fullmatch(path.read_bytes()) if path.is_file() else None
        if found is not None:
            value = {"format": number, **json.loads(found[1])}
            path.write_text(f'{head},"crc32":"00000000","value":{json.dumps(value)}}}\n')


def begun(folder: Path) -> None:
    """Leave a checkpoint of one step, a savepoint of it, and a command that waits."""
    with ms.Engine(checkpoint=folder) as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("q", SQL)
        engine.push({"A": pa.table({"k": [1, 2], "ts": pa.array([0, 1], pa.timestamp("us"))})})
    ms.open(folder).savepoint("kept")
    assert main(["drop", str(folder), "q"]) == 0


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


ASKED: dict[str, Callable[[], object]] = {
    "start": lambda: ms.Engine(checkpoint="ckpt"),
    "load": lambda: ms.Engine.load("ckpt"),
    "load saved": lambda: ms.Engine.load("saved"),
    "save over it": lambda: ms.Engine().save("saved"),
    "open": lambda: ms.open("ckpt"),
    **{
        " ".join(words): (lambda words=words: main(words))  # type: ignore[misc]
        for words in (
            ["status", "ckpt"], ["doctor", "ckpt"], ["doctor", "ckpt", "--repair"],
            ["savepoint", "ckpt", "new"], ["savepoint", "ckpt", "kept", "--drop"], ["rewind", "ckpt", "0"],
            ["fork", "ckpt", "0", "other"], ["drop", "ckpt", "q"], ["status", "saved"],
            ["run", "job.toml", "--once", "--engine", "embedded"], ["check", "job.toml", "--engine", "embedded"],
        )
    },
}  # fmt: skip


@pytest.mark.parametrize(("since", "number"), FORMATS)
@pytest.mark.parametrize("claimed", [True, False], ids=["claimed", "no claim"])
def test_nothing_is_done_with_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    since: str,
    number: int,
    claimed: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    begun(tmp_path / "ckpt")
    ms.Engine().save("saved")
    rewritten(tmp_path, since, number)
    if not claimed:  # The first formats of 0.1.0 knew none.
        for path in (tmp_path / "ckpt" / "manifests").glob("*.claim"):
            path.unlink()
    (tmp_path / "in").mkdir()
    (tmp_path / "job.toml").write_text(JOB.format(sql=SQL))
    before = files_in(tmp_path)
    for asked, ask in ASKED.items():
        capsys.readouterr()
        try:
            assert ask() not in (None, 0), asked
            said = "".join(capsys.readouterr())
        except OtherFormatError as error:
            said = str(error)
        words = " ".join(said.split())
        assert f"format {number} of midstream {since}" in words and f"use midstream {since}" in words, (asked, said)
        assert files_in(tmp_path) == before, asked
