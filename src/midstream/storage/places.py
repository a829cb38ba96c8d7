"""The storage of a place that a user names, a path or a URL, and files copied from one storage to another."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable

from midstream.model.errors import CheckpointError, SinkError
from midstream.storage.disk import is_own_folder, make_folder, sync
from midstream.storage.local import LocalStorage
from midstream.storage.objects import SCHEMES, ObjectStorage
from midstream.storage.storage_contract import Storage

Place = str | os.PathLike[str] | Storage
"""What names a storage: a path, a URL of one of `SCHEMES` or `file:`, or the storage itself."""

WORK = "MIDSTREAM_WORK"
"""The environment's name for the folder of this machine for what must lie on a file system."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_OTHERWISE = {
    "s3n": "write it as s3://BUCKET/...",
    "gcs": "write it as gs://BUCKET/...",
    "dbfs": "write it as it is mounted: /dbfs/..., or /Volumes/...",
}
_FILE = re.compile(r"file:(//(localhost)?(?=/))?")


def storage_at(place: Place, *, durable: bool = True) -> Storage:
    """Open the storage of a place; `durable`: what is written to a path shall survive the loss of power.

    Object stores are always durable. Raises `SinkError` for a URL of a scheme that is not known, and for no path.

    >>> storage_at("s3://bucket/jobs/sales/").url, storage_at("file:///data/sales").url
    ('s3://bucket/jobs/sales', '/data/sales')
    """
    if isinstance(place, Storage):
        return place
    try:
        text = os.fspath(place)
        found = _SCHEME.match(text)
    except TypeError as error:  # A number, None, or the bytes of a path.
        raise _no_path(f"a {type(place).__name__} is not a path") from error
    if not text or "\0" in text:
        raise _no_path("the path has a character 0 in it" if text else "the path is empty")
    if found is not None and found[1].lower() in SCHEMES:
        return ObjectStorage(found[1].lower() + text[len(found[1]) :])
    path = _FILE.sub("", text, count=1) if text.startswith("file:") else text
    if other := _SCHEME.match(path):
        general = "name a path mounted on every machine, or a URL of s3://, gs:// or abfs://"
        raise SinkError(
            f"midstream cannot keep files on {other[0]}{'/' * path.startswith(other[0] + '/')}",
            place=f"{other[0]}...",  # The rest is not shown: it may hold a key.
            remedy=_OTHERWISE.get(other[1].lower(), general),
        )
    if "${" in path:
        raise SinkError(
            "the path contains a variable, which midstream replaces only in job files",
            place=path,
            remedy="use os.environ in code, or leave out the single quotes in a shell",
        )
    return LocalStorage(path, durable=durable)


def _no_path(said: str) -> SinkError:
    return SinkError(said, place="path", remedy="name a folder, or a URL of s3://, gs:// or abfs://, as a string")


def work_folder(storage: Storage) -> str:
    """Return the local folder for programs' own files of a checkpoint.

    It is the checkpoint's own folder, or for one on an object store a folder of this machine.

    Its name can be guessed, so it is refused where somebody else has made it.
    """
    if isinstance(storage, LocalStorage):
        return storage.url
    given = os.environ.get(WORK)
    root = given or os.path.join(tempfile.gettempdir(), f"midstream-work-{os.getuid()}")
    folder = os.path.join(root, hashlib.sha256(storage.url.encode()).hexdigest()[:16])
    for one in (folder,) if given else (root, folder):
        if not is_own_folder(one):
            raise SinkError(
                "the folder belongs to another user, or is a link",
                place=one,
                remedy="find out which program made the folder, and remove the folder; or set "
                f"{WORK} to a folder of this user",
            )
    return folder


def located(place: str | os.PathLike[str]) -> str:
    """Return the absolute path or the URL of a place, as manifests record it.

    >>> located("file:/data/a/../b"), located("gs://bucket/a")
    ('/data/b', 'gs://bucket/a')
    """
    return storage_at(place).url


def copied(source: Storage, target: Storage, names: Iterable[str]) -> None:
    """Copy the files under the same names to `target`: as hard links where both are folders of one file system.

    In a `target` that is durable they survive the loss of power afterwards, those included that were not before.
    """
    names = list(names)
    for name in names:
        if isinstance(source, LocalStorage) and isinstance(target, LocalStorage) and _linked(source, target, name):
            continue
        try:
            target.write(name, source.read(name))
        except FileNotFoundError as error:
            remedy = "name a step whose chunks are whole: midstream doctor says which"
            raise CheckpointError("a chunk is missing", place=source.place(name), remedy=remedy) from error
    if isinstance(target, LocalStorage) and target.durable:
        for folder in sorted({os.path.dirname(target.path(name)) for name in names}):
            sync(folder)


def _linked(source: LocalStorage, target: LocalStorage, name: str) -> bool:
    try:
        make_folder(os.path.dirname(target.path(name)), sync if target.durable else None)
        os.link(source.path(name), target.path(name))
        if target.durable:
            sync(target.path(name))
    except OSError:
        return False
    return True
