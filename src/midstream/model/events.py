"""Everything observable, as frozen values; nothing prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

EVENTS_KEPT = 10_000
"""How many events a running engine or job remembers; an endless stream must not fill the memory."""


@dataclass(frozen=True)
class Event:
    """Something that happened in a step."""

    kind: ClassVar[str] = "event"
    step: int

    def to_json(self) -> dict[str, Any]:
        """The event as JSON values, its kind included."""
        return {"event": self.kind, **asdict(self)}


@dataclass(frozen=True)
class StepDone(Event):
    """A step has been folded into the state: rows in and out, and the watermark of each stream after it."""

    kind: ClassVar[str] = "step_done"
    rows_in: dict[str, int]
    rows_out: dict[str, int]
    comparisons: int
    state_rows: int
    watermarks: dict[str, int | None]


@dataclass(frozen=True)
class RowsLate(Event):
    """Rows came after the watermark of their stream had passed them; they are in the late output."""

    kind: ClassVar[str] = "rows_late"
    stream: str
    rows: int
    watermark: int


@dataclass(frozen=True)
class RowsRejected(Event):
    """Rows could not be read; they are in the dead-letter output with the reason."""

    kind: ClassVar[str] = "rows_rejected"
    stream: str
    rows: int


@dataclass(frozen=True)
class QueryAdded(Event):
    """A query runs from this step on."""

    kind: ClassVar[str] = "query_added"
    query: str
    plan: str


@dataclass(frozen=True)
class QueryDropped(Event):
    """A query ran up to this step."""

    kind: ClassVar[str] = "query_dropped"
    query: str


@dataclass(frozen=True)
class MigrationBegun(Event):
    """A query began to move to another plan; `tasks` are the pieces decomposition left (HybMig Fig. 5).

    `detail` has what was predicted and considered where the strategy was chosen automatically.
    """

    kind: ClassVar[str] = "migration_begun"
    query: str
    strategy: str
    old: str
    new: str
    tasks: tuple[tuple[str, str], ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MigrationProgressed(Event):
    """A migration that lasts for several steps went on."""

    kind: ClassVar[str] = "migration_progressed"
    query: str
    strategy: str
    phase: str
    detail: dict[str, Any]


@dataclass(frozen=True)
class MigrationEnded(Event):
    """The new plan stands alone; the migration cost this many comparisons."""

    kind: ClassVar[str] = "migration_ended"
    query: str
    strategy: str
    plan: str
    comparisons: int
    detail: dict[str, Any]


@dataclass(frozen=True)
class CommandRefused(Event):
    """A command could not be done; everything runs on as before."""

    kind: ClassVar[str] = "command_refused"
    command: dict[str, Any]
    reason: str


@dataclass(frozen=True)
class StateRebuilt(Event):
    """A derived state was missing or damaged and was computed again from base rows."""

    kind: ClassVar[str] = "state_rebuilt"
    lane: str
    state: str
    rows: int
    comparisons: int


@dataclass(frozen=True)
class LanesRescaled(Event):
    """The state was spread over another number of lanes."""

    kind: ClassVar[str] = "lanes_rescaled"
    old: int
    new: int


KINDS: dict[str, type[Event]] = {
    kind.kind: kind
    for kind in (
        StepDone, RowsLate, RowsRejected, QueryAdded, QueryDropped, MigrationBegun, MigrationProgressed,
        MigrationEnded, CommandRefused, StateRebuilt, LanesRescaled,
    )
}  # fmt: skip


def from_json(value: dict[str, Any]) -> Event:
    """The event that `to_json` wrote."""
    fields = {k: _frozen(v) for k, v in value.items() if k != "event"}
    return KINDS[value["event"]](**fields)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
