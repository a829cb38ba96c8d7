"""Have a running job read one more stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.model.errors import QueryError
from midstream.model.events import Event, StreamAdded
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema, check_name
from midstream.sql.scope import find_name
from midstream.units.draft import Draft


@dataclass(frozen=True)
class AddStream(StepCommand):
    """Read a stream from this step on; queries that are added with it or later may name it."""

    stream: StreamSchema

    @override
    def apply(self, draft: Draft) -> None:
        manifest, name = draft.manifest, self.stream.name
        if manifest.streams.get(name) == self.stream:
            return
        refuse_taken_name("stream", name, names_of(manifest))
        draft.manifest = replace(manifest, streams={**manifest.streams, name: self.stream})
        draft.events.append(StreamAdded(manifest.step, name))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, StreamAdded) and event.stream == self.stream.name

    @override
    def is_met(self, manifest: Manifest) -> bool:
        return manifest.streams.get(self.stream.name) == self.stream


def names_of(manifest: Manifest) -> Mapping[str, Iterable[str]]:
    """List what FROM may name, by kind. The answers of a query that others read are a stream of its name too."""
    return {"query": manifest.queries, "stream": manifest.streams, "table": manifest.tables}


def refuse_taken_name(what: str, name: str, taken: Mapping[str, Iterable[str]]) -> None:
    """Raise QueryError where something has the name that a new stream or table is to have, or it is not a name.

    Names in a query differ in more than case: otherwise a query that reads the one would read the other from then on.
    """
    check_name(what, name)
    for kind, names in taken.items():
        if others := find_name(name, names):
            raise QueryError(
                f"there is already a {kind} {others[0]!r}",
                place=f"{what} {name}",
                remedy=f"give the {what} another name",
            )
