"""Everything observable, as frozen values; nothing prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from midstream.model.codec import Tagged
from midstream.model.command import COMMANDS

EVENTS_KEPT = 10_000
"""How many events a running engine or job remembers; an endless stream must not fill the memory."""


@dataclass(frozen=True)
class Event(Tagged, tag="event", group=COMMANDS):
    """Something that happened in a step."""

    step: int


@dataclass(frozen=True)
class StepDone(Event):
    """A step is done. `watermarks` has the watermark of each stream after the step."""

    rows_in: dict[str, int]
    rows_out: dict[str, int]
    comparisons: int
    state_rows: int
    watermarks: dict[str, int | None]


@dataclass(frozen=True)
class StepDelayed(Event):
    """A step failed for a reason outside the job, such as a full disk, and succeeded at a later attempt."""

    reason: str
    attempts: int


@dataclass(frozen=True)
class ChunksFetched(Event):
    """The tasks of a step used the caches of their machines, with `hits` hits and `misses` misses.

    `cache_bytes` is the size of the fullest cache.
    """

    hits: int
    misses: int
    cache_bytes: int


@dataclass(frozen=True)
class RowsLate(Event):
    """Rows arrived after the watermark of their stream had passed their event times. The late output has these rows."""

    stream: str
    rows: int
    watermark: int


@dataclass(frozen=True)
class RowsRejected(Event):
    """midstream could not read some rows. These rows are in the dead-letter output with the reason."""

    stream: str
    rows: int


@dataclass(frozen=True)
class TimesDoubtful(Event):
    """The event times of a stream are probably wrong, perhaps because of a wrong unit; `reason` says why."""

    stream: str
    reason: str


@dataclass(frozen=True)
class ResultsRejected(Event):
    """An expression failed for rows or results of a query. The query's dead-letter output has these rows or results."""

    query: str
    rows: int


@dataclass(frozen=True)
class StreamAdded(Event):
    """A stream was added; the job reads it from this step on."""

    stream: str


@dataclass(frozen=True)
class StreamDropped(Event):
    """The job no longer reads a stream, and has removed it."""

    stream: str


@dataclass(frozen=True)
class TableSet(Event):
    """A static table has a new version from this step on."""

    table: str
    version: int
    rows: int


@dataclass(frozen=True)
class TableDropped(Event):
    """The job has removed a static table."""

    table: str


@dataclass(frozen=True)
class QueryAdded(Event):
    """A query was added, and joins every row that arrives from this step on.

    `sees` says which earlier rows the query joins. "all" means every row that its windows cover. "new" means only the
    rows since step `from_step`. If `from_step` is the query's first step, the query joins no earlier rows. A number is
    an event time in microseconds, and means only the rows from this time on. From the event time `exact_from` on, the
    answers are exact: those of a query that has always run. If `exact_from` is None, all answers are exact.
    """

    query: str
    plan: str
    sees: str | int = "all"
    exact_from: int | None = None
    from_step: int = 0


@dataclass(frozen=True)
class CrossJoinBegun(Event):
    """A new query joins every row of some sources with every row of other sources.

    No condition connects sources of different `groups`. The query runs as written, but a condition is probably missing.
    """

    query: str
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class QueryChanged(Event):
    """A running query has a new text from this step on; `sees`, `from_step` and `exact_from` are as in `QueryAdded`."""

    query: str
    sql: str
    sees: str | int = "all"
    exact_from: int | None = None
    from_step: int = 0


@dataclass(frozen=True)
class QueryDropped(Event):
    """A query was dropped, and gives no answers from this step on."""

    query: str


@dataclass(frozen=True)
class QuerySpread(Event):
    """A query changed from the spread `old` to `new`, with `nodes` nodes. The spread "off" means lanes."""

    query: str
    old: str
    new: str
    nodes: int


@dataclass(frozen=True)
class MigrationBegun(Event):
    """A query began to change to another plan; `tasks` are the parts of the plan that change (HybMig Fig. 5).

    If midstream chose the strategy, `detail` has the predictions for all strategies.
    """

    query: str
    strategy: str
    old: str
    new: str
    tasks: tuple[tuple[str, str], ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MigrationProgressed(Event):
    """A migration that lasts for several steps made progress."""

    query: str
    strategy: str
    phase: str
    detail: dict[str, Any]


@dataclass(frozen=True)
class MigrationEnded(Event):
    """A migration ended, and only the new plan still runs."""

    query: str
    strategy: str
    plan: str
    comparisons: int  # that the migration made
    detail: dict[str, Any]


@dataclass(frozen=True)
class CommandRefused(Event):
    """The job refused a command, and continues without a change."""

    command: dict[str, Any]
    reason: str


@dataclass(frozen=True)
class StopRequested(Event):
    """A command asked the job to end after this step."""


@dataclass(frozen=True)
class StateRebuilt(Event):
    """A derived state was missing or damaged. midstream computed the state again from base rows."""

    lane: str
    state: str
    rows: int
    comparisons: int


@dataclass(frozen=True)
class ChainChanged(Event):
    """The ends of a chain's slices changed.

    `cuts` has the new ends and `before` the old ends, as ages in microseconds. `queries` is the number of queries in
    the chain. A split or a merge of slices (Wang §7.3) moves no row, and only assigns rows to another slice.
    """

    chain: str
    cuts: tuple[int, ...]
    before: tuple[int, ...]
    why: str
    queries: int


@dataclass(frozen=True)
class SharingChanged(Event):
    """The sharing scheme changed from `old` to `new`, from this step on."""

    old: str
    new: str


@dataclass(frozen=True)
class LanesRescaled(Event):
    """The number of lanes changed from `old` to `new`, and the job divided its state among the new lanes."""

    old: int
    new: int


@dataclass(frozen=True)
class PlanReviewed(Event):
    """The optimizer reviewed the plan of a query, and of all `queries` of its chain, and made a decision.

    `decision` is "stay", "suggest", "ask" or "switch". After "ask" the optimizer waits for `approve` or `reject`.
    `policy` and `reason` say which policy decided, and why. `plan` is the running plan. `chosen` is the plan that the
    optimizer prefers to the running plan, or empty. `plans` lists the best plans. Each entry has the plan's cost, the
    bounds of this cost, and the reason for or against the plan. `switch` has the predicted cost of the change. `answer`
    says how to approve the chosen plan, and after "ask" also how to reject it. `figures` has statistics of the streams,
    and the real and the predicted cost of the plan since the last review.
    """

    query: str
    queries: tuple[str, ...]
    policy: str
    decision: str
    reason: str
    plan: str
    chosen: str = ""
    answer: str = ""
    plans: tuple[dict[str, Any], ...] = ()
    switch: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LanesReviewed(Event):
    """The optimizer reviewed the number of lanes, and made a decision.

    `decision` is "stay", "suggest", "ask" or "switch", and `reason` says why. After "ask" the optimizer waits for
    `approve` or `reject`. `chosen` is the new number of lanes, or 0 if the number stays. `answer` says how to approve.
    `figures` has the duration of a step and the trigger's interval in seconds. The interval is None without a trigger.
    `figures` also has the number of workers, and the work of the busiest lane divided by the mean work of a lane. Two
    costs are in nanoseconds: `work` for a step, and `state` for moving the state to other lanes.
    """

    decision: str
    reason: str
    lanes: int
    chosen: int = 0
    answer: str = ""
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LanesProposalClosed(Event):
    """A proposed number of lanes was approved, rejected, or withdrawn because it no longer helps."""

    lanes: int
    state: str
    reason: str = ""


@dataclass(frozen=True)
class ReviewFailed(Event):
    """A review failed; the query continues without a change until its next review."""

    query: str
    reason: str


@dataclass(frozen=True)
class OptimizerSet(Event):
    """The optimizer has new settings for a query.

    An empty `query` means all queries that have no settings of their own.
    """

    query: str
    mode: str
    policy: str


@dataclass(frozen=True)
class ProposalClosed(Event):
    """A proposed plan was approved, rejected, or withdrawn because it is no longer worth its cost."""

    query: str
    plan: str
    state: str
    reason: str = ""


@dataclass(frozen=True)
class PlanPinned(Event):
    """A query was pinned to its plan, or unpinned if `pinned` is False."""

    query: str
    plan: str
    pinned: bool = True
