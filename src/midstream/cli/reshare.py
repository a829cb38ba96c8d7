"""`midstream reshare`: another scheme by which queries share their work."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.checkpoint import Checkpoint, CheckpointPath
from midstream.cli.console import AsJson
from midstream.cli.outcome import WaitSeconds, send


def reshare(
    path: CheckpointPath,
    sharing: Annotated[str, typer.Argument(metavar="SCHEME", help="How queries shall share; see docs/sharing.md.")],
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Let the queries of a running job share their work by another scheme; no answer changes."""
    from midstream.model.commands import Reshare
    from midstream.sharing.discovery import scheme

    scheme(sharing, "SCHEME")
    send(Checkpoint.at(path), Reshare(sharing), wait, as_json)
