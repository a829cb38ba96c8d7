"""The folders of a job's checkpoint."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.codec import encode
from midstream.model.events import Event
from midstream.model.manifest import Manifest
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

    def rejected(self, kind: str, stream: str) -> str:
        """Where a stream's `late` rows or `dead_letters` go."""
        return f"{self.root}/{kind}/{quote(stream, safe=' ')}"

    def results(self, query: str) -> str:
        """Where the results of a query go that was given no sink."""
        return f"{self.root}/results/{quote(query, safe=' ')}"

    def scratch(self, query: str) -> str:
        """Where a query's results are staged, unless its sink has them elsewhere."""
        return f"{self.root}/staging/{quote(query, safe=' ')}"

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
