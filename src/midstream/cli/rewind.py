"""`midstream rewind`: a job goes back to an older step, its sinks too."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath
from midstream.cli.output import print_json, say

TakeOver = Annotated[
    bool,
    typer.Option("--take-over", help="Go on though another process holds the checkpoint: it ends with its next step."),
]


def rewind(
    path: CheckpointPath,
    step: Annotated[int, typer.Argument(metavar="STEP", help="A kept step: the last ten are.")],
    take_over: TakeOver = False,
    as_json: AsJson = False,
) -> None:
    """Go back to an older step of a job that does not run: later steps are given up, and their results taken back.

    When the job is started again it does those steps anew, from what its sources still have, and takes the commands
    again that were given since. A function that results go to cannot be told: it is called again with the same steps.
    """
    from midstream.checkpoint.reader import Checkpoint
    from midstream.job.folders import Folders
    from midstream.job.outputs import Outputs

    checkpoint = Checkpoint.open(path)
    later = checkpoint.manifests.readable_after(step)
    outputs = Outputs(Folders(checkpoint.url), {})
    with checkpoint.manifests.rewound(step, take_over=take_over) as manifest:
        functions = outputs.forget_after(manifest, later)
    if as_json:
        print_json({"step": step, "given_up": [one.step for one in later], "functions_not_told": list(functions)})
        return
    given_up = f"gave up steps {later[0].step} to {later[-1].step}" if later else "gave up no step"
    say(f"went back to step {step}, {given_up}")
    if functions:
        say(f"results of {', '.join(functions)} go to functions, which keep what they were given of those steps")
