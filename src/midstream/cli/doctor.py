"""`midstream doctor`: what is wrong with a checkpoint, and what would mend it."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, placed
from midstream.cli.exit_codes import Failed
from midstream.cli.output import print_json, print_table, progress_bar, say


@placed(CommandGroup.RECOVER, "midstream doctor ckpt", "midstream doctor ckpt --repair")
def doctor(
    path: CheckpointPath,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Repair all faults that midstream can repair without loss. The job must not be running."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Examine a whole checkpoint and its sinks, and report each fault with its place and remedy.

    The exit code is 0 if no fault is harmful, and 1 otherwise.
    """
    from midstream.pipeline.doctor import examine
    from midstream.pipeline.doctor.examination import CHECKS

    with progress_bar(as_json) as progress:
        task = progress.add_task("opening the checkpoint", total=len(CHECKS))

        def begins(check: str) -> None:
            done = [one.__name__ for one in CHECKS].index(check)
            progress.update(task, description=f"examining {check}", completed=done)

        examined = examine(path, repair=repair, begins=begins)
    if as_json:
        found = [{**one.to_json(), "mended": one in examined.mended} for one in examined.findings]
        print_json({"well": examined.is_well, "findings": found})
    elif not examined.findings:
        say("nothing is wrong")
    else:
        print_table(
            "findings",
            ("check", "what", "where", "remedy"),
            [
                (one.check, one.problem, one.place, "mended" if one in examined.mended else one.remedy)
                for one in examined.findings
            ],
        )
    if not examined.is_well:
        harm = [one for one in examined.findings if not one.harmless and one not in examined.mended]
        raise Failed(
            f"{len(harm)} of {len(examined.findings)} findings are harmful; the first is: {harm[0].problem}",
            place=harm[0].place,
            remedy=harm[0].remedy,
        )
