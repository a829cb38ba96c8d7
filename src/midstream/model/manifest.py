"""The whole state of a job after a step: the value that a step folds.

Chunks hold the rows; a manifest lists them. To move a state is to list it elsewhere, to purge is to unlist.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from typing_extensions import override

from midstream.model.codec import WRITTEN, Complete, EncodedOnce, OwnForm, Tagged, decode, encode
from midstream.model.command import Command
from midstream.model.counters import Counters
from midstream.model.frozen import kept_with
from midstream.model.ids import CounterKey, LaneId, StateId, StateKind, digest
from midstream.model.lane_choice import LaneOptimization
from midstream.model.node_spread import NodeSpread
from midstream.model.optimization import Optimization, OptimizerSettings, ReviewBudget
from midstream.model.schema import StreamSchema, TableSchema
from midstream.model.sharing import Chain, Demand, SharedSource
from midstream.model.time_line import Epoch, TimeLine
from midstream.model.window import Clock

SPARK, EMBEDDED = "spark", "embedded"
"""The hosts that a job can have."""

FORMAT_VERSION, FORMAT_SINCE = 1, "0.2.0"
"""The format of checkpoints, and the version of midstream that brought it; no other format is read.

Both change together, and only with an entry in the changelog. Every sealed file and every chunk names them, so a
program that does not read a format can name the version that does.
"""

DEFAULT_SHARING = "auto"
"""The scheme that queries share by unless the user names another."""


@dataclass(frozen=True)
class ChunkRef(EncodedOnce):
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
    lifetimes: Mapping[Clock, tuple[int, int]] = field(default_factory=dict)
    born: tuple[int, int] | None = None
    slice: int = 0
    alive: int = 0

    def kept_as(self, name: str, bytes: int, checksum: int) -> ChunkRef:
        """Describe the chunk where a store has put it; faster than `replace`, because this is done for every chunk."""
        return ChunkRef(name, self.rows, bytes, checksum, self.first, self.lifetimes, self.born, self.slice, self.alive)

    def listed_as(self, slice: int, born: tuple[int, int], alive: int) -> ChunkRef:
        """Describe the chunk as a chain lists it."""
        return ChunkRef(self.name, self.rows, self.bytes, self.checksum, self.first, self.lifetimes, born, slice, alive)


@dataclass(frozen=True)
class StaticTable(EncodedOnce):
    """A version of a static table: its columns, its rows, which are one chunk, and the digest of both.

    Versions count from 1; steps from `since` on see this one.
    """

    schema: TableSchema
    chunk: ChunkRef
    digest: str
    version: int = 1
    since: int = 0


class Keeps(Protocol):
    """A store of chunks, as far as a listing knows it."""

    @property
    def in_memory(self) -> Container[str]:
        """The names of chunks that are in this process's memory."""
        ...


MOST_KNOWN = 1 << 16
"""A listing of at most so many rows knows what it was made of."""


@dataclass(frozen=True)
class StateListing(EncodedOnce):
    """The chunks of one state, how many of their rows are alive, and the number the next row gets.

    `left_out` counts the rows that ever were left out of a join state because their key was NULL: under another key
    they may count, so only a state that left none out can be sorted again. `lineage` is the digest of what the rows'
    lifetimes were reckoned by, where queries share them.
    """

    chunks: tuple[ChunkRef, ...] = ()
    live: int = 0
    next_row: int = 0
    left_out: int = 0
    lineage: str = ""

    known: ClassVar[tuple[Keeps, Sequence[Any]] | None] = None
    """A store, and what this process has put the chunks into it from, in their order; no part of the value."""

    def made_of(self, runs: Sequence[Any], store: Keeps, *, always: bool = False) -> StateListing:
        """Remember what the chunks were put into a store from, so that few rows do not have to be read again.

        `always`: also of many rows, because `runs` take no memory next to the store's.
        """
        held = store.in_memory
        if (always or self.live <= MOST_KNOWN) and not [1 for chunk in self.chunks if chunk.name not in held]:
            object.__setattr__(self, "known", (store, runs))
        return self

    def known_from(self, store: Keeps) -> Sequence[Any] | None:
        """Return what the chunks in this store were made of, if that is known and none is lost."""
        if self.known is None or self.known[0] is not store:
            return None
        held = store.in_memory
        return None if [1 for chunk in self.chunks if chunk.name not in held] else self.known[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "known"}

    @cached_property
    def ends(self) -> Mapping[Clock, int]:
        """By clock the least end of a lifetime in any of the chunks; no row dies before."""
        found: dict[Clock, int] = {}
        for chunk in self.chunks:
            for clock, (least, _) in chunk.lifetimes.items():
                if clock not in found or least < found[clock]:
                    found[clock] = least
        return found


class LanePart(NamedTuple):
    """Where what a lane holds is written outside of the manifest: its name in the store, size and checksum.

    `rows` are alive in the lane. The boxes of `moving` units run more than a plan. So a step needs to read the parts of
    its own lanes only. Written, it is one text.

    >>> LanePart("00000007-p0.lanes-1a2b3c4d@640", 512, 0xCAFE, 30).text
    '00000007-p0.lanes-1a2b3c4d@640 512 0000cafe 30 []'
    """

    name: str
    bytes: int
    checksum: int
    rows: int = 0
    moving: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The part as one text, since names in a store have no spaces."""
        moving = json.dumps(self.moving) if self.moving else "[]"
        return f"{self.name} {self.bytes} {self.checksum:08x} {self.rows} {moving}"

    @staticmethod
    def parse(text: str) -> LanePart:
        """Parse the part from its text; raises `ValueError` for another one."""
        name, size, checksum, rows, moving = text.split(" ", 4)
        return LanePart(
            name, int(size), int(checksum, 16), int(rows), tuple(json.loads(moving)) if moving != "[]" else ()
        )


class KeepsLanes(Protocol):
    """A store of parts, as far as a lane's state knows it."""

    def lane(self, part: LanePart) -> LaneState:
        """Read a part."""
        ...


MOST_INSIDE = 32
"""A manifest lists so many lanes of a group itself; of more lanes it names the part of each.

So what a step writes for a lane to which nothing happened is a name, and the lane's own task writes the rest.
"""


@dataclass(frozen=True)
class LaneState(OwnForm, EncodedOnce):
    """The content of a lane: listings by state id, and the snapshot of each query's box.

    What is written as a `part` may not be read yet; then the first who asks for `states` or `boxes` reads it.
    """

    states: Mapping[StateId, StateListing] = field(default_factory=dict)
    boxes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    part: ClassVar[LanePart | None] = None
    """Where it is written; no part of the value."""

    files: ClassVar[Sequence[str] | None] = None
    """The files of its chunks, if a task has reported them; no part of the value."""

    _store: ClassVar[KeepsLanes | None] = None

    @staticmethod
    def unread(part: LanePart, store: KeepsLanes | None = None, files: Sequence[str] | None = None) -> LaneState:
        """Return a state that is read from a store when somebody asks for it."""
        made = object.__new__(LaneState)
        made.__dict__.update(part=part, _store=store, files=files)
        return made

    def read_from(self, store: KeepsLanes) -> LaneState:
        """Read the part of the state from a store; raises `CheckpointError` where it is missing or damaged."""
        assert self.part is not None
        found, made = store.lane(self.part), LaneState.unread(self.part, store)
        made.__dict__.update(states=found.states, boxes=found.boxes)
        return made

    def written(self, part: LanePart) -> LaneState:
        """Return the state, written as a part."""
        made = LaneState(self.states, self.boxes)
        made.__dict__.update(part=part)
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Read the part."""
            if name not in ("states", "boxes") or self._store is None:
                raise AttributeError(name)
            self.__dict__.update(self.read_from(self._store).__dict__)
            return self.__dict__[name]

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LaneState):
            return NotImplemented
        if self.part is not None and self.part == other.part:
            return True
        return bool(self.states == other.states and self.boxes == other.boxes)

    def __getstate__(self) -> dict[str, Any]:
        # A task reads the parts of its own lanes.
        names = ("states", "boxes") if self._store is None else ("part", "_store")
        return {name: value for name, value in self.__dict__.items() if name in names}

    @property
    def rows(self) -> int:
        """The number of rows and combinations that are alive."""
        return (
            self.part.rows if self.part is not None else kept_with(self, "_rows", lambda own: living_rows(own.states))
        )

    @property
    def moving(self) -> tuple[str, ...]:
        """The units whose boxes run more than a plan."""
        if self.part is not None:
            return self.part.moving
        return kept_with(self, "_moving", _moving_in)

    @override
    def to_json(self) -> Any:
        """Encode the text of its part, or all of it if it has none."""
        return encode(self) if self.part is None else self.part.text

    @override
    @classmethod
    def from_json(cls, value: Any) -> LaneState:
        """Decode what `to_json` wrote; who has the store of its part must give it the store."""
        return cls.unread(LanePart.parse(value)) if isinstance(value, str) else decode(cls, value)


def _moving_in(state: LaneState) -> tuple[str, ...]:
    return tuple([unit for unit, box in state.boxes.items() if box.get("box") != "plan"])


def living_rows(states: Mapping[StateId, StateListing]) -> int:
    """Count the rows and combinations alive in states of one lane; a state under several indexes is counted once."""
    found: dict[str, int] = {}
    for state_id, listing in states.items():
        held = state_id.combinations
        alive = listing.live if state_id.kind is not StateKind.TABLE else 0
        if alive and (held not in found or found[held] < alive):
            found[held] = alive
    return sum(found.values())


@dataclass(frozen=True)
class PartProgress:
    """The progress of a partition of a stream: the greatest event time it brought, and the job's event clock then."""

    greatest: int
    spoke_at: int


@dataclass(frozen=True)
class StreamProgress(EncodedOnce):
    """The progress of a stream in event time.

    `greatest`: the greatest event time seen. `spoke_at`: the job's event clock (greatest time over all streams) when
    this stream last brought a row. `floor`: what an idle stream's watermark was lifted to. Counts are of admitted, late
    and rejected rows. Of a stream that comes in partitions, each in an order of its own, `parts` has those that brought
    rows, and `held` is the least of their greatest times, partitions that are idle left out. `jump`, in microseconds,
    is how far the stream went ahead in the step that was last reported for it.
    """

    greatest: int | None = None
    spoke_at: int | None = None
    floor: int | None = None
    rows: int = 0
    late: int = 0
    rejected: int = 0
    parts: Mapping[str, PartProgress] = field(default_factory=dict)
    held: int | None = None
    jump: int = 0


@dataclass(frozen=True)
class BoundQuery(Tagged, EncodedOnce, tag="bound", brief=True):
    """A query's SQL, for people, and, in kinds of it, what it means over the streams that it reads, for the machine.

    Only commands parse a text. Readers of a manifest find the query bound.
    """

    text: str

    def digest(self) -> str:
        """Hash what the query means, whatever its text: queries of equal digests give equal answers."""
        return kept_with(self, "_digest", lambda own: digest(json.dumps({**encode(own), "text": ""}, sort_keys=True)))


@dataclass(frozen=True)
class MigrationRecord:
    """A migration under way: by which strategy, from plan to plan, since which step, at what cost so far.

    `detail` is what was foreseen when it began. `figures` are what its strategy says of it, as JSON values: the phase,
    the progress from 0 to 1, the plans that serve, and more; of several lanes those of the slowest.
    """

    strategy: str
    old: str
    plan: str
    begun: int
    comparisons: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keeps_old_states(self) -> bool:
        """Whether the plan that it leaves still takes in every row, so that its states are whole."""
        return not self.figures.get("new_serves", "").startswith("all")


@dataclass(frozen=True)
class QueryEntry(EncodedOnce):
    """A running query, bound: its plan, since which step it sees rows, its lane group and where its results go.

    Queries of one group spread their rows over lanes by the same keys; those of the group `single` have one lane.
    `plan` is the plan the query moves to; `migrations` has those under way by their mark.
    `operator` is the user's operator on top, or the one the query moves to.

    A query that shares states runs in a `chain`; `demands` says by label what it reads of them. It entered its chain,
    as it is now, in step `entered`; `sees` and `from_step` say which rows that arrived before it joins, as in the event
    `QueryAdded`; from `exact_from` on its answers are those of a query that has run forever (None: from the beginning,
    or it is unknown). A query that is `private` has states of its own even where another's are equal. `spread` has for
    each stream the text of what its rows are spread over lanes by; `nodes` is there where the query is spread over
    nodes, which are the lanes of a group of its own. It `rejects`
    rows or results for which something cannot be evaluated; `rejected` counts them. A `part` of others, such as a
    subquery that aggregates, is there as long as one of them reads its answers. `order` has by alias the numbers of
    the source's conditions in the order of their evaluation; without it each batch has its own order.
    """

    query: BoundQuery
    plan: str
    since: int
    group: str = "single"
    sink: Mapping[str, Any] | None = None
    counters: Counters = Counters()
    migrations: Mapping[str, MigrationRecord] = field(default_factory=dict)
    operator: Mapping[str, Any] | None = None
    chain: str = ""
    demands: Mapping[str, Demand] = field(default_factory=dict)
    entered: int = 0
    sees: str | int = "all"
    from_step: int = 0
    exact_from: int | None = None
    private: bool = False
    spread: tuple[tuple[str, str], ...] = ()
    nodes: NodeSpread | None = None
    rejects: bool = False
    rejected: int = 0
    part: bool = False
    order: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        """The text that the user wrote."""
        return self.query.text

    @property
    def shares(self) -> bool:
        """Whether the query runs in a chain."""
        return bool(self.demands)

    def unit(self, name: str) -> str:
        """Return what runs the query of this name: its chain, or itself."""
        return self.chain if self.demands else name

    def counted(self, counters: Counters) -> QueryEntry:
        """Replace the counters; faster than `replace`, because every step does this for every query."""
        entry = object.__new__(QueryEntry)
        entry.__dict__.update(self.__dict__, counters=counters)
        entry.__dict__.pop(WRITTEN, None)
        return entry


@dataclass(frozen=True)
class RefusedQuery:
    """A query that was to begin with step `step` and does not run, for a `reason`."""

    sql: str
    step: int
    reason: str


class OutputFile(NamedTuple):
    """A file that a task has staged for an output."""

    kind: str
    name: str
    file: str
    rows: int


@dataclass(frozen=True)
class DeclaredSpread:
    """The nodes over which the job's script spreads a query."""

    scheme: str
    nodes: int | str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DeclaredQuery(EncodedOnce):
    """A query as the job's script or program declared it last."""

    sql: str
    plan: str | None = None
    operator: Mapping[str, Any] | None = None
    spread: DeclaredSpread | None = None


@dataclass(frozen=True)
class LastDeclared(EncodedOnce):
    """The last declaration of the job's script or program; `lanes` and `sharing` are None if it named none.

    `optimizer` has its settings by query, and `tables` the digest of the rows of each static table.
    """

    lanes: int | None = None
    sharing: str | None = None
    queries: Mapping[str, DeclaredQuery] = field(default_factory=dict)
    optimizer: Mapping[str, OptimizerSettings] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CarriedFiles:
    """Files of Spark's log by path: the texts of small ones, and the names of the objects that hold large ones."""

    texts: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Published(EncodedOnce):
    """The files, events and notes that a host publishes with a step.

    `files` were staged for the sinks. `events`, as JSON values, are in no file yet. `read` names by stream the files
    whose rows the step has, or the last step that read any. `spark` is the log that goes from driver to driver, where
    the checkpoint is on an object store. `dead_letter_sinks` describes by stream what gets a copy of its dead letters.
    The `late` rows and `dead_letters` by stream are those of an engine that was saved.
    """

    host: str = SPARK
    declared: LastDeclared = field(default_factory=LastDeclared)
    files: tuple[OutputFile, ...] = ()
    events: tuple[Any, ...] = ()
    read: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spark: CarriedFiles | None = None
    dead_letter_sinks: Mapping[str, Any] = field(default_factory=dict)
    late: Mapping[str, ChunkRef] = field(default_factory=dict)
    dead_letters: Mapping[str, ChunkRef] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest(Complete):
    """The job after `step` steps.

    `chains` and `shared_sources` say what queries share; `reshared` is the step since which `sharing` is the scheme.
    Its `lanes` are held in fewer shares where there are many more of them than threads: `held_in` so many (0: each by
    itself). `epochs` are those of its time line; none for an engine that has no checkpoint. `optimizer` has the
    settings of queries that have none of their own, `optimizations` what the optimizer keeps of each query, and
    `lane_optimization` what it keeps of the lanes; `reviews` is what reviews may take. `refused` are queries that do
    not run, until they begin or are dropped. The job is `still` where the last step brought nothing and changed
    nothing.
    """

    job: str = ""
    step: int = -1
    seed: int = 0
    sharing: str = DEFAULT_SHARING
    lanes: int = 1
    streams: Mapping[str, StreamSchema] = field(default_factory=dict)
    tables: Mapping[str, StaticTable] = field(default_factory=dict)
    progress: Mapping[str, StreamProgress] = field(default_factory=dict)
    queries: Mapping[str, QueryEntry] = field(default_factory=dict)
    refused: Mapping[str, RefusedQuery] = field(default_factory=dict)
    chains: Mapping[str, Chain] = field(default_factory=dict)
    shared_sources: Mapping[str, SharedSource] = field(default_factory=dict)
    reshared: int = 0
    lane_states: Mapping[LaneId, LaneState] = field(default_factory=dict)
    operators: Mapping[CounterKey, Counters] = field(default_factory=dict)
    totals: Counters = Counters()
    last_command: int = 0
    pending: tuple[Command, ...] = ()
    published: Published = field(default_factory=Published)
    epochs: tuple[Epoch, ...] = ()
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    optimizations: Mapping[str, Optimization] = field(default_factory=dict)
    lane_optimization: LaneOptimization = field(default_factory=LaneOptimization)
    reviews: ReviewBudget = field(default_factory=ReviewBudget)
    still: bool = False
    held_in: int = 0

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # Without what is remembered beside.

    @property
    def shares(self) -> int:
        """The number of shares that hold the state of a query whose rows are spread over the job's lanes."""
        return self.held_in or self.lanes

    @property
    def is_on_spark(self) -> bool:
        """Whether Spark is the host; an engine in memory is not a job."""
        return bool(self.job) and self.published.host == SPARK

    @property
    def pushed_streams(self) -> dict[str, StreamSchema]:
        """The streams that were declared: those of answers come and go with the queries that read them."""
        return {name: stream for name, stream in self.streams.items() if not stream.answers_of}

    @cached_property
    def table_schemas(self) -> Mapping[str, TableSchema]:
        """The static tables that queries may look rows up in."""
        return {name: table.schema for name, table in self.tables.items()}

    @property
    def time_line(self) -> TimeLine:
        """The epochs whose steps the job has done."""
        return TimeLine(self.job, self.epochs)

    def in_epoch(self, epoch: Epoch) -> Manifest:
        """Return the manifest from which an epoch goes on."""
        return replace(self, epochs=self.time_line.after(epoch).epochs)

    @property
    def asked_queries(self) -> tuple[str, ...]:
        """The names of the queries that a user wrote, in order; parts of them have generated names."""
        return tuple(sorted(name for name, entry in self.queries.items() if not entry.part))

    def without_refused(self, name: str) -> Manifest:
        """Remove the note that a query was refused."""
        if name not in self.refused:
            return self
        return replace(self, refused={other: one for other, one in self.refused.items() if other != name})

    def with_query(self, name: str, entry: QueryEntry) -> Manifest:
        """Add or replace a query."""
        return replace(self, queries={**self.queries, name: entry})
