"""`midstream dashboard`: how jobs stand, in the browser."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Annotated

import typer

from midstream.cli.arguments import CommandGroup, placed
from midstream.cli.output import say

LOW_PRIORITY = 15
"""On one machine a job goes first: what nobody else needs of the processors suffices for pages."""


@placed(CommandGroup.LOOK, "midstream dashboard ckpt", "midstream dashboard ckpt --control")
def dashboard(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="CKPT...", help="The checkpoints of jobs, or of saved engines: paths or URLs."),
    ],
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on. With the default, only this machine can connect.")
    ] = ("127.0.0.1"),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 means any free port.")
    ] = 8765,
    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="Accept commands from every browser that has the token. The printed address contains the token.",
        ),
    ] = False,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="MIDSTREAM_TOKEN",
            help="The token that --control requires. Default: a random token.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="One more host name that browsers may use in the dashboard's address; may be repeated.",
        ),
    ] = None,
) -> None:
    """Show the plans, migrations, decisions and steps of running or ended jobs in the browser.

    The dashboard reads only the checkpoints, and changes nothing without --control. Control+C stops the dashboard.
    """
    from midstream.checkpoint.reader import Checkpoint
    from midstream.dashboard.safety import access
    from midstream.dashboard.server import Dashboard

    allowed = access(host, control=control, token=token, names=tuple(allow_host or ()))
    served = Dashboard(paths, allowed, port)
    for place in paths:
        if not Checkpoint.is_at(place):
            say(f"no job has written a checkpoint to {place} yet; the page shows the job from its first step on")
    say(f"dashboard: {served.url}")
    say("Control+C ends it" if control else "read-only; Control+C ends it")
    with suppress(OSError):
        os.nice(LOW_PRIORITY)
    served.run()
