"""`midstream calibrate`: what one operation of the join kernel costs on this machine."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CommandGroup, placed
from midstream.cli.exit_codes import WrongUse, folder_made
from midstream.cli.output import print_json, print_table, progress_bar, say

IN_WORDS = {
    "comparison": "a candidate pair",
    "result": "a row that a join gives out",
    "insert": "a row that goes into a state",
    "probe": "a row that looks for partners",
    "route": "a row that an eddy sends on",
    "operator_step": "an operator in a step, with or without rows",
}


@placed(CommandGroup.TOOLS, "midstream calibrate --out units.json")
def calibrate(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the unit costs to a file, as JSON.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the costs of join operations on this machine.

    The optimizer uses these costs to compare plans. The measurement takes about a minute. Run no other programs on the
    machine during the measurement. Without a calibration, the optimizer uses default costs, and corrects these costs
    with the measured times of the job's steps.
    """
    from midstream.lab.timed_runs import RUNS, timed_runs
    from midstream.optimizer.cost.calibration import fitted, units_to_json
    from midstream.storage.disk import write_whole

    if out is not None:
        folder_made(out.parent)
        if out.is_dir():
            raise WrongUse(f"cannot write the unit costs to a folder: {out}", place="--out", remedy="name a file")
    with progress_bar(as_json) as progress:
        task = progress.add_task("measuring joins", total=len(RUNS))
        timings = []
        for timing in timed_runs(time.perf_counter_ns, RUNS):
            timings.append(timing)
            progress.advance(task)
    units = units_to_json(fitted(timings))
    if out is not None:
        write_whole(os.path.abspath(out), (json.dumps(units, indent=2) + "\n").encode())
    if as_json:
        print_json(units)
    else:
        rows = [(name, f"{units[name]:,.1f}", words) for name, words in IN_WORDS.items()]
        print_table("", ("operation", "nanoseconds", "what it is"), rows)
        say(f"written to {out}" if out else "keep them with --out FILE")
