"""`midstream drop`: end a query."""

from __future__ import annotations

from midstream.cli.checkpoint import Checkpoint, CheckpointPath, QueryName
from midstream.cli.console import AsJson
from midstream.cli.outcome import WaitSeconds, send


def drop(path: CheckpointPath, query: QueryName, wait: WaitSeconds = None, as_json: AsJson = False) -> None:
    """End a query of a running job and let go of the state that no other query reads."""
    from midstream.model.commands import DropQuery

    send(Checkpoint.at(path), DropQuery(query), wait, as_json)
