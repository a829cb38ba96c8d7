"""The dashboard's `/metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from midstream.checkpoint.reader import Checkpoint
from midstream.explain.prometheus import Measured, exposition
from midstream.model.errors import MidstreamError


def metrics_of(checkpoints: Sequence[Checkpoint]) -> str:
    """Measure the jobs for Prometheus; several have a label `checkpoint` each, and one that does not read is left out.

    Costs what `midstream metrics` does, each time it is asked.
    """
    found = list[Measured]()
    for checkpoint in checkpoints:
        with suppress(MidstreamError, FileNotFoundError):
            labels = {"checkpoint": checkpoint.url} if len(checkpoints) > 1 else {}
            found.append(Measured(checkpoint.report(), checkpoint.step_times(), labels))
    return exposition(found)
