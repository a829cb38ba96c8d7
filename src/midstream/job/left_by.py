"""What a job has left in its sinks, by the stamps that it bears."""

from __future__ import annotations

from collections.abc import Callable

from midstream.model.manifest import Manifest
from midstream.model.time_line import Stamp
from midstream.sinks import FileSink, Sink


def left_by(manifest: Manifest, sink: Sink) -> Callable[[Stamp], bool]:
    """Make the test whether the manifest's job has left something, by its stamp.

    A manifest may name any sink, and only what this job has left there goes. Files without a stamp are never the job's
    own. A table may have lost whose its newest step was.
    """
    unstamped = not isinstance(sink, FileSink)
    return lambda stamp: stamp.job == manifest.job or (unstamped and not stamp.job)
