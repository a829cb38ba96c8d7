"""A step being planned: what commands change, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from midstream.model.errors import QueryError
from midstream.model.events import Event
from midstream.model.manifest import Manifest, QueryEntry
from midstream.state.chunk_store import ChunkStore


@dataclass(frozen=True)
class MigrationStart:
    """A migration that begins with a step: `query` named the unit whose plan moves; `operator` is the new one on top.

    In a unit that several queries share, `plan` is in terms of the labels they share.
    """

    query: str
    plan: str
    strategy: str
    options: Mapping[str, Any]
    operator: Mapping[str, Any] | None = None


@dataclass
class Draft:
    """The manifest that a step begins with, the migrations that begin in it, by unit, and the events so far.

    The one thing that commands change. `chunks` are the manifest's, None where a step is planned without its rows.
    `changed`: queries were added, dropped, or share otherwise; `reworded`: the text of a running query changed, so that
    what its base rows are kept for must be settled again.
    """

    manifest: Manifest
    migrations: dict[str, tuple[MigrationStart, ...]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    changed: bool = False
    reworded: bool = False
    chunks: ChunkStore | None = None

    def copy(self) -> Draft:
        """Copy the draft, so that the copy can be changed without changing this one."""
        return Draft(self.manifest, {**self.migrations}, [*self.events], self.changed, self.reworded, self.chunks)

    def entry(self, name: str) -> QueryEntry:
        """Return the entry of a running query; raises `QueryError` where there is none of this name."""
        # What a program gives may be no text, and then cannot be looked up.
        if not isinstance(name, str) or name not in self.manifest.queries:
            known = ", ".join(self.manifest.asked_queries) or "none is running"
            raise QueryError(f"there is no query {name!r}", place=f"{name}", remedy=f"use one of: {known}")
        return self.manifest.queries[name]
