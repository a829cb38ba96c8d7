"""`midstream reshare`: another mode by which queries share their work."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.checkpoint import Checkpoint, CheckpointPath
from midstream.cli.console import AsJson
from midstream.cli.outcome import WaitSeconds, send

MODES = "auto, mem_opt, cpu_opt, pull_up, push_down or off"


def reshare(
    path: CheckpointPath,
    mode: Annotated[str, typer.Argument(metavar="MODE", help=f"How queries shall share: {MODES}.")],
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Let the queries of a running job share their work by another mode; no answer changes."""
    from midstream.model.commands import Reshare
    from midstream.model.sharing import check_sharing

    check_sharing(mode, "MODE")
    send(Checkpoint.at(path), Reshare(mode), wait, as_json)
