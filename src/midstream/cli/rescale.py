"""`midstream rescale`: spread a job over another number of lanes."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.checkpoint import Checkpoint, CheckpointPath
from midstream.cli.console import AsJson
from midstream.cli.outcome import WaitSeconds, send

MOST_LANES = 4096
"""Rows are hashed to as many slots; a lane holds one at least."""


def rescale(
    path: CheckpointPath,
    lanes: Annotated[int, typer.Option("--lanes", min=1, max=MOST_LANES, help="How many lanes there shall be.")],
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Spread the state of a running job over another number of lanes; no row is lost and no answer changes."""
    from midstream.model.commands import Rescale

    send(Checkpoint.at(path), Rescale(lanes), wait, as_json)
