"""Another distribution: a folder with modules and the metadata of entry points, as an installed one has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def distribution(folder: Path, entry_points: Mapping[str, Mapping[str, str]], **modules: str) -> Path:
    """Write modules (by name their text) and entry points (by group) into a folder; on the path, it is installed."""
    info = folder / "another-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) for group, named in entry_points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder
