"""Spark's own log of a job whose checkpoint is on an object store.

Spark writes its log by Hadoop's file systems, which know no object store without jars that are not ours to bring. So it
lies on the driver's disk, and each manifest carries what it takes to go on after its step: a start on another machine,
or at an older step, writes the log again from the manifest.
"""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Collection, Iterable, Iterator

from midstream.checkpoint.folders import Folders
from midstream.model.errors import CheckpointError
from midstream.model.manifest import CarriedFiles, Manifest
from midstream.pipeline.spark_log import begin_log, fit_sources, forget_former_logs, has_committed
from midstream.storage.disk import Writing, names_in
from midstream.storage.files import epoch_folder
from midstream.storage.places import work_folder
from midstream.storage.storage_contract import Storage

CARRIED = "spark"
"""Where a manifest carries the log: by its path the text of each file, or of a large one the name of the object."""

LARGE = 16_384
"""Characters from which on a file of the log is an object of its own; it never changes, so it is written once."""

_REMEDY = "restore the folder, go back to another step, or begin with another checkpoint"
_KEPT = 16
"""Steps for which an object is kept that no manifest carries any more: more than manifests are kept."""

_PATH = re.compile(r"metadata|(offsets|commits)/\d+|sources/\d+/[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_BATCH = re.compile(r"\d+", re.ASCII)
_COMPACT = re.compile(r"(\d+)\.compact")


def spark_log(folders: Folders, epoch: int) -> SparkLog:
    """Choose the log of an epoch, which is not begun yet."""
    return CarriedLog(folders, epoch) if folders.is_remote else SparkLog(folders, epoch)


def copy_carried(manifest: Manifest, source: Folders, target: Folders) -> None:
    """Copy what another checkpoint needs to go on from the manifest, except the manifest itself."""
    for name in _objects(manifest):
        target.storage.at(CARRIED).write(name, source.storage.at(CARRIED).read(name))


class SparkLog:
    """The log of an epoch, in a folder of the checkpoint."""

    def __init__(self, folders: Folders, epoch: int) -> None:
        self._folders, self._epoch = folders, epoch

    @property
    def folder(self) -> str:
        """The folder that Spark writes."""
        return f"{self._folders.spark}/{epoch_folder(self._epoch)}"

    def begin(self, manifest: Manifest) -> None:
        """Write the log as it was after the manifest's step; raises `CheckpointError` where that is not known."""
        begin_log(self._folders.spark, self._epoch, manifest, durable=self._folders.durable)

    def fit(self, sources: int) -> None:
        """Make the log have so many sources, before a query over them goes on with it."""
        fit_sources(self.folder, sources, durable=self._folders.durable)

    def noted(self, step: int) -> CarriedFiles | None:
        """Return what a step's manifest must carry of the log; None where the log lasts by itself."""
        return None

    def forget_old(self, step: int) -> None:
        """Remove, once a step is committed, what was noted for old steps."""

    def has_committed(self, step: int) -> bool:
        """Return whether Spark knows that a step is done to the end, its sinks filled."""
        return has_committed(self.folder, step)

    def forget_former(self) -> None:
        """Remove the logs of former epochs."""
        forget_former_logs(self._folders.spark, self._epoch)


class CarriedLog(SparkLog):
    """The log of an epoch on this machine's disk, carried from driver to driver by manifests.

    Carried are the offsets of the step and of the one before, the commit of the one before, and of each source the
    newest file that holds all before it, and those after that. So Spark does the step again, whose results are there.
    """

    def __init__(self, folders: Folders, epoch: int) -> None:
        super().__init__(folders, epoch)
        self._known: dict[str, str] = {}
        self._objects: dict[str, str] = {}
        self._last_carried: dict[str, int] = {}

    @property
    def _storage(self) -> Storage:
        return self._folders.storage.at(CARRIED)

    def begin(self, manifest: Manifest) -> None:
        """Write the log that the manifest carries."""
        carried = manifest.published.spark
        if carried is None and manifest.step >= 0:
            message = f"the manifest does not say where step {manifest.step} ended in Spark's sources"
            raise CheckpointError(message, place=self._storage.url, remedy=_REMEDY)
        found = carried or CarriedFiles()
        texts = dict(found.texts)
        for path, name in found.objects.items():
            texts[path] = self._fetched(name)
        if not all(map(_PATH.fullmatch, texts)):
            message = "the manifest names files that Spark's log does not have"
            raise CheckpointError(message, place=self._storage.url, remedy=_REMEDY)
        with Writing(self.folder):
            # Its name can be guessed. Once it is there and this user's alone, nobody puts a link into it.
            os.makedirs(work_folder(self._folders.storage), mode=0o700, exist_ok=True)
            work_folder(self._folders.storage)
            shutil.rmtree(self.folder, ignore_errors=True)  # Of a checkpoint that was here before.
            for path, text in texts.items():
                target = os.path.join(self.folder, *path.split("/"))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "w", encoding="utf-8", newline="") as file:
                    file.write(text)
        self._objects = dict(found.objects)
        self._last_carried = dict.fromkeys(self._objects.values(), manifest.step)

    def fit(self, sources: int) -> None:
        """Make the log have so many sources; what the next step's manifest carries is read again."""
        super().fit(sources)
        self._known = {}

    def noted(self, step: int) -> CarriedFiles:
        """Return the files of the log, and write large ones to the storage first."""
        paths = [path for path in self._paths(step) if os.path.isfile(f"{self.folder}/{path}")]
        self._known = {path: self._known.get(path) or self._text(path) for path in paths}
        objects = {path: self._object(path, text) for path, text in self._known.items() if len(text) >= LARGE}
        texts = {path: text for path, text in self._known.items() if path not in objects}
        self._objects = objects
        self._last_carried |= dict.fromkeys(objects.values(), step)
        return CarriedFiles(texts, objects)

    def forget_old(self, step: int) -> None:
        """Remove the objects that no manifest carries any more."""
        gone = [name for name, last in self._last_carried.items() if last < step - _KEPT]
        if gone:
            kept = _carried(self._folders.savepoints.all().values())
            gone = [name for name in gone if name not in kept]
        self._storage.remove(gone)
        for name in gone:
            del self._last_carried[name]

    def forget_former(self) -> None:
        """Remove the logs of former epochs from this disk, and the objects that nothing that is kept carries."""
        super().forget_former()
        kept = _carried(self._folders.kept())
        self._storage.remove(name for name in self._storage.names() if name not in kept)

    def _paths(self, step: int) -> Iterator[str]:
        yield "metadata"
        yield from (f"offsets/{batch}" for batch in (step - 1, step) if batch >= 0)
        if step > 0:
            yield f"commits/{step - 1}"
        for source in filter(_BATCH.fullmatch, names_in(f"{self.folder}/sources")):
            names = [n for n in names_in(f"{self.folder}/sources/{source}") if not n.endswith((".crc", ".tmp"))]
            newest = max((int(found[1]) for name in names if (found := _COMPACT.fullmatch(name))), default=-1)
            paths = ((f"sources/{source}/{n}", _number(n)) for n in names if not n.startswith("."))
            yield from (path for path, number in paths if number >= newest and _PATH.fullmatch(path))

    def _text(self, path: str) -> str:
        with open(f"{self.folder}/{path}", encoding="utf-8", newline="") as file:
            return file.read()

    def _object(self, path: str, text: str) -> str:
        known = self._objects.get(path)
        if known is not None:
            return known
        data = text.encode()
        name = f"{path.replace('/', '-')}-{zlib.crc32(data):08x}"
        self._storage.write(name, data)
        return name

    def _fetched(self, name: str) -> str:
        try:
            data = self._storage.read(name).to_pybytes()
        except FileNotFoundError:
            message = f"a part of Spark's log is missing: {name}"
            raise CheckpointError(message, place=self._storage.url, remedy=_REMEDY) from None
        if f"{zlib.crc32(data):08x}" != name.rpartition("-")[2]:
            message = "a part of Spark's log is damaged: its checksum does not match"
            raise CheckpointError(message, place=self._storage.place(name), remedy=_REMEDY)
        return bytes(data).decode()


def _carried(manifests: Iterable[Manifest]) -> set[str]:
    return {name for manifest in manifests for name in _objects(manifest)}


def _objects(manifest: Manifest) -> Collection[str]:
    carried = manifest.published.spark
    return () if carried is None else carried.objects.values()


def _number(name: str) -> int:
    # A file that is of no batch is always carried.
    digits = name.partition(".")[0]
    return int(digits) if _BATCH.fullmatch(digits) else 1 << 62
