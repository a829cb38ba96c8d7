"""The package sends itself to the executors, so that a cluster needs nothing but Python, numpy, pyarrow and sqlglot."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from pyspark import SparkContext

import midstream

_SHIPPED: set[tuple[str, str]] = set()


def ship(context: SparkContext) -> None:
    """Make the package importable in the Python workers of a Spark application; once is enough."""
    archive = _archive()
    mark = (str(context.applicationId), archive)
    if mark not in _SHIPPED:
        context.addPyFile(archive)
        _SHIPPED.add(mark)


@cache
def _archive() -> str:
    """A zip of the package's sources; its name says what is in it, so that no worker takes an old one for a new one."""
    package = Path(midstream.__file__).parent
    sources = [path for path in sorted(package.rglob("*")) if path.suffix == ".py" or path.name == "py.typed"]
    content = {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in sources}
    digest = hashlib.sha256(b"\0".join(name.encode() + b"\0" + data for name, data in content.items())).hexdigest()[:12]
    folder = tempfile.mkdtemp(prefix="midstream-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = os.path.join(folder, f"midstream-{digest}.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return target
