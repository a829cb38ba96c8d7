"""What a job has left in its sinks, by the stamps that it bears."""

from __future__ import annotations

from collections.abc import Callable

from midstream.model.manifest import Manifest
from midstream.model.time_line import Stamp
from midstream.sinks import FileSink, Sink


def left_by(manifest: Manifest, sink: Sink) -> Callable[[Stamp], bool]:
    """Whether the manifest's job has left something, by its stamp: whatever a manifest names as a sink, only that goes.

    Files without a stamp are the job's own only where it may have done steps before there were epochs.
    """
    unstamped = not isinstance(sink, FileSink) or _knew_no_epochs(manifest)
    return lambda stamp: stamp.job == manifest.job or (unstamped and not stamp.job)


def _knew_no_epochs(manifest: Manifest) -> bool:
    """Whether the job's steps up to the manifest's were done before there were epochs."""
    if len(manifest.epochs) < 2:  # The only one began with going back.
        return True
    return manifest.epochs[0].since > max(manifest.step, 0)
