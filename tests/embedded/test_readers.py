"""Who only reads a checkpoint claims nothing and changes nothing, whoever writes it meanwhile."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

import midstream as ms
from midstream.cli.main import main
from tests.embedded.test_checkpoint import opened, step

READERS = (
    ("status",),
    ("status", "--json", "--events", "5"),
    ("explain", "pairs"),
    ("explain", "pairs", "--analyze"),
    ("plans", "pairs"),
    ("state",),
    ("state", "pairs"),
    ("doctor",),
)


def files(root: Path) -> dict[str, str]:
    """What is in a folder, by path."""
    return {
        str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest() for path in root.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_readers_need_no_epoch(command: tuple[str, ...], tmp_path: Path) -> None:
    """Nor do they see one that another process holds as a reason to wait, or take it over."""
    checkpoint = tmp_path / "checkpoint"
    with opened(tmp_path) as engine:
        engine.push(step(0))
        held, before = engine.manifest.epochs, files(checkpoint)
        name, *rest = command
        assert main([name, str(checkpoint), *rest]) == 0
        read = ms.open(checkpoint)
        assert read.report().step == 0 and read.states()
        assert files(checkpoint) == before
        engine.push(step(1))
        assert engine.manifest.epochs == held and engine.manifest.step == 1
