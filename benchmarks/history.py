"""midstream as it was at a commit: its sources, taken out of the repository's history, and how to run them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from midstream.model.errors import MidstreamError

ROOT = Path(__file__).resolve().parents[1]


def take_out(commit: str, folder: Path) -> None:
    """Write the sources of that commit into a new folder; raises `MidstreamError` where the history has it not."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        what = f"commit {commit} is not in the history"
        raise MidstreamError(what, place=str(ROOT), remedy="clone the repository with its history")
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)


def environment(folder: Path) -> Mapping[str, str]:
    """The environment of a process that runs midstream's sources of this folder, and the benchmarks of today."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(ROOT)])}
