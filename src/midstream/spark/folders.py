"""The folders of a job's checkpoint."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.codec import encode
from midstream.model.events import Event
from midstream.model.manifest import Manifest
from midstream.spark.sinks import FileSink, FunctionSink, Sink, as_sink
from midstream.spark.staging import Staged
from midstream.state.store.disk import discard, names_in, write_whole
from midstream.state.sweep import sweep

STEPS_OF_EVENTS_KEPT = 1_000
_EVENTS = re.compile(r"(\d+)\.jsonl")


@dataclass(frozen=True)
class Folders:
    """A checkpoint: Spark's own folder and ours, side by side."""

    root: str

    @property
    def spark(self) -> str:
        """Spark's offsets and commits."""
        return f"{self.root}/spark"

    @property
    def store(self) -> str:
        """The chunks."""
        return f"{self.root}/store"

    @cached_property
    def manifests(self) -> ManifestLog:
        """The manifests."""
        return ManifestLog(f"{self.root}/manifests")

    @cached_property
    def commands(self) -> CommandLog:
        """The command log."""
        return CommandLog(f"{self.root}/commands")

    def output(self, kind: str, stream: str) -> Staged:
        """Where a stream's `late` rows or `dead_letters` go."""
        return Staged(f"{self.root}/{kind}/{quote(stream, safe=' ')}")

    def results(self, query: str) -> str:
        """Where the results of a query go that was given no sink."""
        return f"{self.root}/results/{quote(query, safe=' ')}"

    def staged(self, query: str, sink: Sink) -> Staged:
        """Where the tasks write a query's results: beside the sink's files, or here for a function to read."""
        match sink:
            case FileSink(path):
                return Staged(path)
            case FunctionSink():
                return Staged(f"{self.root}/staging/{quote(query, safe=' ')}")

    def sink_of(self, query: str, value: Mapping[str, Any] | None) -> Sink | None:
        """The sink that a manifest names; None for a function, which no manifest can hold."""
        return None if value is not None and "function" in value else as_sink(value, self.results(query))

    def write_events(self, step: int, events: Iterable[Event]) -> None:
        """Write what happened in a step; a step that is done again writes the same."""
        lines = "".join(json.dumps(encode(event)) + "\n" for event in events)
        write_whole(f"{self.root}/events/{step:012d}.jsonl", lines.encode())

    def tidy(self, step: int) -> None:
        """Delete chunks that no kept manifest lists, and the events of long ago."""
        kept: tuple[Manifest, ...] = self.manifests.kept()
        sweep(self.store, kept)
        folder = f"{self.root}/events"
        for name in names_in(folder):
            match = _EVENTS.fullmatch(name)
            if match and int(match[1]) <= step - STEPS_OF_EVENTS_KEPT:
                discard(os.path.join(folder, name))
