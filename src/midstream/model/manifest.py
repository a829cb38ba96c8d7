"""The whole state of a job after a step: the value that a step folds.

Chunks hold the rows; a manifest lists them. To move a state is to list it elsewhere, to purge is to unlist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from midstream.model.commands import Command
from midstream.model.commands import from_json as command_from_json
from midstream.model.counters import Counters
from midstream.model.holding import Chain, Holding, Wanted
from midstream.model.schema import StreamSchema

FORMAT_VERSION = 2
"""Of manifests, chunks and events; a checkpoint of another version is refused."""

DEFAULT_SHARING = "auto"
"""The scheme that queries share by unless the user names another."""


@dataclass(frozen=True)
class ChunkRef:
    """One immutable chunk in the store, and what must be known of it without reading it.

    `first` is the number of its first row (base rows are numbered in order of arrival); `lifetimes` gives for each
    clock the least and the greatest end of a row's lifetime, so that a chunk is purged or kept whole without a look
    inside. In a chain, `born` are the least and the greatest time of its rows, `slice` is where it is listed, and
    `alive` how many of its rows are.
    """

    name: str
    rows: int
    bytes: int
    checksum: int
    first: int = 0
    lifetimes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    born: tuple[int, int] | None = None
    slice: int = 0
    alive: int = 0

    def to_json(self) -> dict[str, Any]:
        """The reference as JSON values."""
        told = {
            "name": self.name, "rows": self.rows, "bytes": self.bytes, "checksum": self.checksum, "first": self.first,
            "lifetimes": {clock: list(ends) for clock, ends in self.lifetimes.items()},
        }  # fmt: skip
        if self.born is None:
            return told
        return {**told, "born": list(self.born), "slice": self.slice, "alive": self.alive}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> ChunkRef:
        """The reference that `to_json` wrote."""
        ends = {clock: (low, high) for clock, (low, high) in value["lifetimes"].items()}
        born = (value["born"][0], value["born"][1]) if "born" in value else None
        return ChunkRef(
            value["name"], value["rows"], value["bytes"], value["checksum"], value["first"], ends, born,
            value.get("slice", 0), value.get("alive", 0),
        )  # fmt: skip


@dataclass(frozen=True)
class StateListing:
    """The chunks of one state, how many of their rows are alive, and the number the next row gets.

    `left_out` counts the rows that ever were left out of a join state because their key was NULL: under another key
    they may count, so only a state that left none out can be sorted anew. `lineage` is the digest of what the rows'
    lifetimes were reckoned by, where queries share them.
    """

    chunks: tuple[ChunkRef, ...] = ()
    live: int = 0
    next_row: int = 0
    left_out: int = 0
    lineage: str = ""

    def to_json(self) -> dict[str, Any]:
        """The listing as JSON values."""
        return {"chunks": [c.to_json() for c in self.chunks], "live": self.live,
                "next_row": self.next_row, "left_out": self.left_out, "lineage": self.lineage}  # fmt: skip

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> StateListing:
        """The listing that `to_json` wrote."""
        chunks = tuple(map(ChunkRef.from_json, value["chunks"]))
        return StateListing(chunks, value["live"], value["next_row"], value["left_out"], value["lineage"])


@dataclass(frozen=True)
class LaneState:
    """What one lane holds: listings by state id, and the snapshot of each query's box."""

    states: Mapping[str, StateListing] = field(default_factory=dict)
    boxes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The lane as JSON values."""
        return {"states": {k: v.to_json() for k, v in self.states.items()}, "boxes": dict(self.boxes)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> LaneState:
        """The lane that `to_json` wrote."""
        return LaneState({k: StateListing.from_json(v) for k, v in value["states"].items()}, value["boxes"])


@dataclass(frozen=True)
class StreamProgress:
    """How far a stream has come.

    `greatest`: the greatest event time seen. `spoke_at`: the job's event clock (greatest time over all streams) when
    this stream last brought a row. `floor`: what an idle stream's watermark was lifted to. Counts are of admitted, late
    and rejected rows.
    """

    greatest: int | None = None
    spoke_at: int | None = None
    floor: int | None = None
    rows: int = 0
    late: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class QueryEntry:
    """A running query: its text, its plan, since which step it sees rows, its lane group and where its results go.

    Queries of one group spread their rows over lanes by the same keys; those of the group `single` have one lane.
    `plan` is the plan the query moves to; `migrations` has those under way by their mark, with what they cost so far.
    `operator` is the user's operator on top, or the one the query moves to.

    A query that shares states runs in a `chain`; `wants` says by label what it wants of them. It joined its chain, as
    it is now, in step `joined`, and `sees` what the chain held then: "all", rows from an event time on, or "new" ones;
    from `exact_from` on its answers are those of a query that has run for ever (None: from the beginning, or that
    nobody can tell). A query that is `apart` has states of its own even where another's are equal. `spread` has for
    each stream the text of what its rows are spread over lanes by.
    """

    sql: str
    plan: str
    since: int
    group: str = "single"
    sink: Mapping[str, Any] | None = None
    counters: Counters = Counters()
    migrations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    operator: Mapping[str, Any] | None = None
    chain: str = ""
    wants: Mapping[str, Wanted] = field(default_factory=dict)
    joined: int = 0
    sees: str | int = "all"
    exact_from: int | None = None
    apart: bool = False
    spread: tuple[tuple[str, str], ...] = ()

    @property
    def shares(self) -> bool:
        """Whether the query runs in a chain."""
        return bool(self.wants)

    def unit(self, name: str) -> str:
        """What runs the query of this name: its chain, or itself."""
        return self.chain if self.wants else name

    def counted(self, counters: Counters) -> QueryEntry:
        """The entry with other counters; every step does this for every query, and `replace` takes its time."""
        entry = object.__new__(QueryEntry)
        entry.__dict__.update(self.__dict__, counters=counters)
        return entry

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON values."""
        wants = {label: wanted.to_json() for label, wanted in self.wants.items()}
        return {**vars(self), "counters": self.counters.to_json(), "wants": wants}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> QueryEntry:
        """The entry that `to_json` wrote."""
        wants = {label: Wanted.from_json(wanted) for label, wanted in value["wants"].items()}
        spread = tuple((stream, text) for stream, text in value["spread"])
        return QueryEntry(**{**value, "counters": Counters(**value["counters"]), "wants": wants, "spread": spread})


@dataclass(frozen=True)
class Manifest:
    """The job after `step` steps.

    `chains` and `holdings` say who shares what; `reshared` is the step since which it is shared by the present mode.
    """

    job: str = ""
    step: int = -1
    seed: int = 0
    sharing: str = DEFAULT_SHARING
    lanes: int = 1
    streams: Mapping[str, StreamSchema] = field(default_factory=dict)
    progress: Mapping[str, StreamProgress] = field(default_factory=dict)
    queries: Mapping[str, QueryEntry] = field(default_factory=dict)
    chains: Mapping[str, Chain] = field(default_factory=dict)
    holdings: Mapping[str, Holding] = field(default_factory=dict)
    reshared: int = 0
    lane_states: Mapping[str, LaneState] = field(default_factory=dict)
    operators: Mapping[str, Counters] = field(default_factory=dict)
    totals: Counters = Counters()
    last_command: int = 0
    pending: tuple[Command, ...] = ()
    published: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON values, its format version included."""
        return {
            "format": FORMAT_VERSION,
            "job": self.job, "step": self.step, "seed": self.seed, "sharing": self.sharing, "lanes": self.lanes,
            "streams": {k: v.to_json() for k, v in self.streams.items()},
            "progress": {k: vars(v) for k, v in self.progress.items()},
            "queries": {k: v.to_json() for k, v in self.queries.items()},
            "chains": {k: v.to_json() for k, v in self.chains.items()},
            "holdings": {k: v.to_json() for k, v in self.holdings.items()},
            "reshared": self.reshared,
            "lane_states": {k: v.to_json() for k, v in self.lane_states.items()},
            "operators": {k: v.to_json() for k, v in self.operators.items()},
            "totals": self.totals.to_json(),
            "last_command": self.last_command,
            "pending": [c.to_json() for c in self.pending],
            "published": dict(self.published),
        }  # fmt: skip

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Manifest:
        """The manifest that `to_json` wrote; the caller has checked the format version."""
        return Manifest(
            job=value["job"], step=value["step"], seed=value["seed"], sharing=value["sharing"], lanes=value["lanes"],
            streams={k: StreamSchema.from_json(v) for k, v in value["streams"].items()},
            progress={k: StreamProgress(**v) for k, v in value["progress"].items()},
            queries={k: QueryEntry.from_json(v) for k, v in value["queries"].items()},
            chains={k: Chain.from_json(v) for k, v in value["chains"].items()},
            holdings={k: Holding.from_json(v) for k, v in value["holdings"].items()},
            reshared=value["reshared"],
            lane_states={k: LaneState.from_json(v) for k, v in value["lane_states"].items()},
            operators={k: Counters(**v) for k, v in value["operators"].items()},
            totals=Counters(**value["totals"]),
            last_command=value["last_command"],
            pending=tuple(map(command_from_json, value["pending"])),
            published=value["published"],
        )  # fmt: skip

    def with_query(self, name: str, entry: QueryEntry) -> Manifest:
        """The manifest with a query added or replaced."""
        return replace(self, queries={**self.queries, name: entry})
