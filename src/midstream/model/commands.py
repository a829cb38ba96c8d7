"""What a user may ask of a running job; taken at the beginning of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from midstream.model.errors import CheckpointError, QueryError


@dataclass(frozen=True)
class Command:
    """A wish, with its number in the command log (0: not logged)."""

    kind: ClassVar[str] = "command"

    def to_json(self) -> dict[str, Any]:
        """The command as JSON values, its kind included."""
        return {"command": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Migrate(Command):
    """Carry a query to another plan by a strategy, or to another user's operator, or to both.

    An empty `plan` is the present one; `operator` is None where it stays as it is. `together` moves the plan that the
    query shares, under all the queries that share it; otherwise the query leaves them.
    """

    kind: ClassVar[str] = "migrate"
    query: str
    plan: str
    strategy: str = "moving_state"
    options: dict[str, Any] = field(default_factory=dict)
    operator: dict[str, Any] | None = None
    together: bool = False


@dataclass(frozen=True)
class AddQuery(Command):
    """Begin a query; it answers from this step on. `sink` says where a job puts its results.

    `operator` is a user's, on top: `{"class": "package.module:Class", "options": {...}}`. With `history`, the rows that
    arrive meet those that queries like it still hold; without, only those that arrive from this step on.
    """

    kind: ClassVar[str] = "add_query"
    query: str
    sql: str
    plan: str | None = None
    sink: dict[str, Any] | None = None
    operator: dict[str, Any] | None = None
    history: bool = True


@dataclass(frozen=True)
class ChangeQuery(Command):
    """Give a running query another window, filter or select list from this step on; its name and plan stay."""

    kind: ClassVar[str] = "change_query"
    query: str
    sql: str


@dataclass(frozen=True)
class DropQuery(Command):
    """End a query and unlist the state that nobody else reads."""

    kind: ClassVar[str] = "drop_query"
    query: str


@dataclass(frozen=True)
class Rescale(Command):
    """Spread the state over another number of lanes."""

    kind: ClassVar[str] = "rescale"
    lanes: int


@dataclass(frozen=True)
class Reshare(Command):
    """Let queries share what they join by another scheme, by its name."""

    kind: ClassVar[str] = "reshare"
    sharing: str


def operator_json(path: str | None, options: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """A user's operator as commands name it.

    >>> operator_json("shop.operators:Median", {"every": 5})
    {'class': 'shop.operators:Median', 'options': {'every': 5}}
    """
    if path is None:
        if options:
            raise QueryError("options of no operator", place="operator_options", remedy="name the operator too")
        return None
    return {"class": path, "options": dict(options or {})}


KINDS: dict[str, type[Command]] = {
    kind.kind: kind for kind in (Migrate, AddQuery, ChangeQuery, DropQuery, Rescale, Reshare)
}


def from_json(value: dict[str, Any]) -> Command:
    """The command that `to_json` wrote.

    >>> from_json({"command": "drop_query", "query": "q"})
    DropQuery(query='q')
    """
    kind = KINDS.get(value.get("command", ""))
    if kind is None:
        raise CheckpointError(
            f"unknown command {value.get('command')!r}",
            place="command log",
            remedy=f"use one of: {', '.join(KINDS)}",
        )
    return kind(**{k: v for k, v in value.items() if k not in ("command", "id")})
