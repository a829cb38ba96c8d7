"""`midstream savepoint`, `fork` and `rewind`: steps that stay, jobs that begin there, and going back."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, placed
from midstream.cli.exit_codes import WrongUse
from midstream.cli.output import busy, print_json, say

TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over", help="Take over the checkpoint from another process; the other process ends at its next step."
    ),
]
StepOrName = Annotated[
    str, typer.Argument(metavar="STEP", help="The number of one of the last ten steps, or the name of a savepoint.")
]


@placed(CommandGroup.RECOVER, "midstream savepoint ckpt before-sale")
def savepoint(
    path: CheckpointPath,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the savepoint: a letter, then letters, digits, - and _.")
    ],
    step: Annotated[
        int | None,
        typer.Option("--step", metavar="N", help="Keep this step, one of the last ten. Default: the newest step."),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop the savepoint with this name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Keep a step of a job as a savepoint, until you drop this savepoint. The job may be running."""
    from midstream.pipeline.opened import OpenCheckpoint

    checkpoint = OpenCheckpoint.of(path)
    if drop:
        if step is not None:
            raise WrongUse("--drop cannot be used together with --step", place="--step", remedy="leave out --step")
        checkpoint.drop_savepoint(name)
        value: dict[str, str | int] = {"dropped": name}
        said = f"dropped savepoint {name}"
    else:
        kept = checkpoint.savepoint(name, step)
        said, value = f"step {kept} is kept as {name}", {"savepoint": name, "step": kept}
    if as_json:
        print_json({**value, "savepoints": checkpoint.savepoints})
    else:
        say(said)


@placed(CommandGroup.RECOVER, "midstream fork ckpt before-sale trial")
def fork(
    path: CheckpointPath,
    name: StepOrName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The checkpoint of the new job: a path or a URL.")],
    sink: Annotated[
        list[str] | None,
        typer.Option(
            "--sink",
            metavar="QUERY=DIR",
            help="The folder for the results of a query. Default: below NEW/results. May be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a new job from a step of an existing job, in a new checkpoint. The existing job does not change.

    The new job writes results below the new checkpoint, or into the folders of --sink, and never into the sinks of the
    existing job.
    """
    from midstream.pipeline.opened import OpenCheckpoint

    sinks = {}
    for text in sink or ():
        query, separator, folder = text.partition("=")
        if not separator or not folder:
            raise WrongUse(
                f"{text!r} is not QUERY=DIR", place="--sink", remedy="write, for example, pairs=/data/out/pairs"
            )
        sinks[query] = {"path": folder}
    with busy(f"copying the state of {name}", as_json):
        job = OpenCheckpoint.of(path).fork(step_of(name), new, sinks)
    if as_json:
        print_json({"job": job, "checkpoint": new, "from": name})
    else:
        say(f"job {job} begins after {name}, in {new}")


@placed(CommandGroup.RECOVER, "midstream rewind ckpt before-sale", "midstream rewind ckpt 120")
def rewind(path: CheckpointPath, step: StepOrName, take_over: TakeOver = False, as_json: AsJson = False) -> None:
    """Go back to an older step of a job that is not running. The job gives up later steps and removes their results.

    At its next start, the job repeats these steps with the rows that its sources still have. The job also takes the
    commands of these steps again. A function sink cannot remove results, so midstream calls the function again with the
    results of these steps.
    """
    from midstream.pipeline.opened import OpenCheckpoint

    with busy(f"going back to {step}", as_json):
        went = OpenCheckpoint.of(path).rewind(step_of(step), take_over=take_over)
    if as_json:
        value = {"step": went.step, "given_up": list(went.given_up), "functions_not_told": list(went.functions)}
        print_json(value)
        return
    later = went.given_up
    say(f"went back to step {went.step}, gave up {f'steps {later[0]} to {later[-1]}' if later else 'no step'}")
    if went.functions:
        say(f"results of {', '.join(went.functions)} go to functions, which keep what they were given of those steps")


def step_of(text: str) -> int | str:
    """Parse the number of a step, or the name of a savepoint (which begins with a letter)."""
    return int(text) if text.lstrip("-").isdigit() else text
