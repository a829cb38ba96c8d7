"""Have a running job read a stream no longer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.logical.query import query_of
from midstream.model.command import Prompt
from midstream.model.errors import QueryError
from midstream.model.events import Event, StreamDropped
from midstream.units.draft import Draft


@dataclass(frozen=True)
class DropStream(StepCommand):
    """Forget a stream that no query reads any more.

    Not on Spark: its log of offsets, which a job that goes back needs, has a place for each stream that it ever read.
    """

    option_of = ("drop", "--stream")
    examples = ("ckpt clicks",)

    stream: Annotated[str, Prompt("A stream that no query reads; not of a job on Spark.", "NAME")]

    @override
    def apply(self, draft: Draft) -> None:
        manifest, place = draft.manifest, f"stream {self.stream}"
        if not isinstance(self.stream, str) or self.stream not in manifest.pushed_streams:
            known = ", ".join(manifest.pushed_streams)
            remedy = f"use one of: {known}" if known else "no drop is needed: the job has no stream"
            raise QueryError(f"there is no stream {self.stream!r}", place=place, remedy=remedy)
        readers = [name for name, entry in manifest.queries.items() if self.stream in query_of(entry).children]
        if readers:
            raise QueryError(
                f"stream {self.stream!r} cannot be dropped while queries read it: {', '.join(readers)}",
                place=place,
                remedy=f"drop {'it' if len(readers) == 1 else 'them'} first",
            )
        if manifest.is_on_spark:
            raise QueryError(
                f"stream {self.stream!r} cannot be dropped on Spark, because Spark's log of offsets names it",
                place=place,
                remedy="leave the stream declared: midstream only counts its rows while no query reads it",
            )
        streams = {name: one for name, one in manifest.streams.items() if name != self.stream}
        progress = {name: one for name, one in manifest.progress.items() if name != self.stream}
        draft.manifest = replace(manifest, streams=streams, progress=progress)
        draft.events.append(StreamDropped(manifest.step, self.stream))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, StreamDropped) and event.stream == self.stream
