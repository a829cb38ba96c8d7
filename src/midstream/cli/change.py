"""`midstream change`: another window or filter for a running query."""

from __future__ import annotations

from midstream.cli.checkpoint import Checkpoint, CheckpointPath, QueryName
from midstream.cli.console import AsJson
from midstream.cli.options import SqlText, sql_text
from midstream.cli.outcome import WaitSeconds, send


def change(
    path: CheckpointPath, query: QueryName, sql: SqlText, wait: WaitSeconds = None, as_json: AsJson = False
) -> None:
    """Give a running query another window or filter; it keeps its plan, its state and where its results go.

    A wider one is exact from the moment on that what is held reaches back far enough; --wait says from when.
    """
    from midstream.model.commands import ChangeQuery

    send(Checkpoint.at(path), ChangeQuery(query, sql_text(sql)), wait, as_json)
