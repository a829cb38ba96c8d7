"""`midstream metrics`: a checkpoint's numbers for Prometheus."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, placed
from midstream.cli.output import print_json


@placed(
    CommandGroup.LOOK,
    "midstream metrics ckpt",
    "midstream metrics ckpt --out /var/lib/node_exporter/midstream.prom",
)
def metrics(
    path: CheckpointPath,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the metrics to this file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a job's metrics in the text format of Prometheus: steps, rows, lags, state, results, and times by phase.

    With --out, the command replaces the file atomically, so a collector never reads half of the file. For
    node_exporter, write a file with the ending .prom into the folder of --collector.textfile.directory, and run the
    command from a timer.
    """
    from midstream.checkpoint.reader import Checkpoint
    from midstream.explain.prometheus import prometheus_text
    from midstream.model.step_time import time_summary
    from midstream.storage.disk import write_whole

    checkpoint = Checkpoint.open(path)
    report, times = checkpoint.report(), checkpoint.step_times()
    text = prometheus_text(report, times)
    if out is not None:
        write_whole(os.path.abspath(out), text.encode())
        out.chmod(0o644)
    if as_json:
        print_json({**report.metrics(), "time": time_summary(times)})
    elif out is None:
        sys.stdout.write(text)
