"""What a step has written when its manifest is published survives the loss of power."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import midstream as ms
from midstream.state.chunk_store import file_of
from midstream.storage.sweep import listed
from tests.unit.building import table

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which file a handle is of")


class Disk:
    """What would be left after the loss of power: the files and names that were synced after they last changed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.whole, self.names = set[str](), set[str]()
        self.published: list[tuple[str, set[str], set[str]]] = []
        replace, rename, fsync, mkdir = os.replace, os.rename, os.fsync, os.mkdir

        def renamed(source: str, target: str) -> None:
            if os.path.dirname(target).endswith("/manifests") and target.endswith(".json"):
                self.published.append((target, {*self.whole}, {*self.names}))
            for known in (self.whole, self.names):
                for path in [one for one in known if one == source or one.startswith(f"{source}/")]:
                    known.remove(path)
                    known.add(f"{target}{path[len(source) :]}")
            self.names.discard(target)

        def replacing(source: str, target: str) -> None:
            renamed(source, target)
            replace(source, target)

        def renaming(source: str, target: str) -> None:
            renamed(source, target)
            rename(source, target)

        def synced(handle: int) -> None:
            path = os.readlink(f"/proc/self/fd/{handle}")
            if os.path.isdir(path):
                self.names |= {f"{path}/{name}" for name in os.listdir(path)}
            else:
                self.whole.add(path)
            fsync(handle)

        def made(path: str, mode: int = 0o777) -> None:
            mkdir(path, mode)  # Raises where the folder is there: then its name stays what it was.
            self.names.discard(path)

        for name, replaced in {"replace": replacing, "rename": renaming, "fsync": synced, "mkdir": made}.items():
            monkeypatch.setattr(os, name, replaced)

    def kept(self, path: str, whole: set[str], names: set[str], root: str) -> bool:
        """Whether a file's bytes, its name and those of the folders it is in would be left."""
        way = [path]
        while os.path.dirname(way[-1]) != root:
            way.append(os.path.dirname(way[-1]))
        return path in whole and names.issuperset(way)


def pushed(number: int, rows: int = 10) -> dict[str, object]:
    given = table([number] * rows, k=[rows * number + row for row in range(rows)], v=[0.5] * rows)
    return {name: given.select(["k", "ts", "v"]) for name in ("A", "B")}


@pytest.mark.parametrize("rows", [10, 80_000], ids=["small", "large"])
def test_what_a_manifest_lists_is_synced_before_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    root = str(tmp_path)
    disk = Disk(monkeypatch)
    with ms.Engine(checkpoint=tmp_path / "checkpoint") as engine:
        for name in ("A", "B"):
            engine.create_stream(name, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
        engine.add_query("join", "SELECT A.k, B.v FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS")
        for number in range(3):
            assert engine.push(pushed(number, rows))["join"].num_rows == rows
            path, whole, names = disk.published[-1]
            checkpoint, manifest = f"{root}/checkpoint", engine.manifest
            token = manifest.epochs[-1].token
            staged = f"{checkpoint}/results/join/_staging/{token}/step={number:08d}"
            needed = [f"{checkpoint}/store/{file_of(chunk)}" for chunk in listed(manifest)]
            needed += [f"{staged}/{file}" for _, _, file, _ in manifest.published.files]
            assert len(needed) >= 2 and f"-{number:012d}." in path
            assert [one for one in needed if not disk.kept(one, whole, names, root)] == []
            assert disk.kept(path, disk.whole, disk.names, root)
            final = f"{checkpoint}/results/join/step={number:08d}"
            assert all(disk.kept(f"{final}/{name}", disk.whole, disk.names, root) for name in os.listdir(final))
    monkeypatch.undo()
