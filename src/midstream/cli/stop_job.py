"""`midstream stop`: end a running job in order, from anywhere that its checkpoint can be reached from."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, placed
from midstream.cli.exit_codes import Failed
from midstream.cli.output import print_json, progress_bar, say
from midstream.model.words import counted

POLL_SECONDS = 0.2


@placed(CommandGroup.RUN, "midstream stop ckpt", "midstream stop ckpt --wait 300")
def stop(
    path: CheckpointPath,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="The time to wait for the end of the job.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Stop a running job after its next step. At its next start, the job continues after this step.

    The command writes a request into the job's log. So the job can run on another machine, and the checkpoint can be on
    an object store. If there are no new rows, a job on Spark stops without another step. In this case the output lists
    the commands that wait for the next start. The request does not stop a program that pushes rows into an engine. The
    program can check `Engine.stop_requested`.
    """
    from midstream.checkpoint.reader import Checkpoint
    from midstream.commands.stop import Stop
    from midstream.model.codec import encode

    checkpoint = Checkpoint.open(path)
    life = checkpoint.liveness()
    if not life.takes_commands:
        if as_json:
            print_json(life.to_json() | {"stopped": False})
        else:
            say(f"nothing to stop: {life.sentence(time.time())}")
        return
    epoch = checkpoint.manifest().epochs[-1].number
    with progress_bar(as_json) as progress:
        progress.add_task("waiting for the job to end its step", total=None)
        checkpoint.send(Stop(epoch))
        deadline = time.monotonic() + wait
        while (life := checkpoint.liveness()).takes_commands and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    ended = not life.takes_commands
    manifest = checkpoint.manifest()
    left = checkpoint.waiting(manifest) if ended else ()
    if as_json:
        waiting = [{"id": number, **encode(command)} for number, command in left]
        print_json(life.to_json() | {"stopped": ended, "waiting_commands": waiting})
    elif ended:
        say(f"{life.sentence(time.time())}; newest step {manifest.step:,}")
        if left:
            names = ", ".join(f"{number} ({command.kind})" for number, command in left)
            say(f"{counted(len(left), 'command')} not taken: {names}")
            taken = "first batch of data" if manifest.is_on_spark else "first step"
            say(f"start the job again: its {taken} takes {'it' if len(left) == 1 else 'them'}")
    if not ended:
        raise Failed(
            f"the job has not ended after {wait:g} seconds: {life.sentence(time.time())}",
            place=checkpoint.url,
            remedy="the job ends with its next step; wait longer with --wait, or end its process",
        )
