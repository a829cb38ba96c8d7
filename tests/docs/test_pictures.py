"""The pictures of docs/architecture.md are what the code says today."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from docs.drawing import imports, rooms

ROOT = Path(__file__).resolve().parent.parent.parent
AGAIN = "draw the pictures again: make pictures"


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pictures as a process draws them that has run nothing else."""
    folder = tmp_path_factory.mktemp("pictures")
    subprocess.run([sys.executable, "-m", "docs.drawing", str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.mark.parametrize("name", ["rooms.svg", "way.svg"])
def test_the_picture_is_drawn_from_the_code_as_it_is(redrawn: Path, name: str) -> None:
    assert (redrawn / name).read_text() == (ROOT / "docs" / "pictures" / name).read_text(), AGAIN


@pytest.mark.parametrize("wrong", [{"model": {"step"}, "step": set()}, {"lab": {"spark"}, "spark": {"lab"}}])
def test_an_import_that_runs_up_or_in_a_circle_cannot_be_drawn(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, set[str]]
) -> None:
    monkeypatch.setattr(rooms, "room_imports", lambda: {room: frozenset(others) for room, others in wrong.items()})
    with pytest.raises(ValueError, match="downwards and in no circle"):
        rooms.draw()


def test_what_the_drawing_says_of_itself_holds() -> None:
    assert doctest.testmod(imports).failed == 0
