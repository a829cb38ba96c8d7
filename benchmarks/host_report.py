"""Reports of a benchmark on disk: one JSON file a host, with the load and a row for each contestant."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol


class Row(Protocol):
    """A row of a report."""

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        ...


def save(path: Path, report: Any) -> None:
    """Write a report, whose `load` is a dataclass and whose `records` are rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**vars(report), "load": asdict(report.load), "records": [record.to_json() for record in report.records]}
    path.write_text(json.dumps(content) + "\n")


def load(
    path: Path, load_of: Callable[..., Any], record_of: Callable[[Mapping[str, Any]], Row]
) -> dict[str, Any] | None:
    """The fields of the report that `save` wrote, if there is one."""
    if not path.exists():
        return None
    value = json.loads(path.read_text())
    return {**value, "load": load_of(**value["load"]), "records": tuple(map(record_of, value["records"]))}
