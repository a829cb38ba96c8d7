"""What a user may ask of a running job; taken at the beginning of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from midstream.model.codec import Tagged
from midstream.model.errors import QueryError


@dataclass(frozen=True)
class Command(Tagged, tag="command"):
    """A wish, with its number in the command log (0: not logged)."""


@dataclass(frozen=True)
class Migrate(Command):
    """Carry a query to another plan by a strategy, or to another user's operator, or to both.

    An empty `plan` is the present one; `operator` is None where it stays as it is. `together` moves the plan that the
    query shares, under all the queries that share it; otherwise the query leaves them.
    """

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

    query: str
    sql: str
    plan: str | None = None
    sink: dict[str, Any] | None = None
    operator: dict[str, Any] | None = None
    history: bool = True


@dataclass(frozen=True)
class ChangeQuery(Command):
    """Give a running query another window, filter or select list from this step on; its name and plan stay."""

    query: str
    sql: str


@dataclass(frozen=True)
class DropQuery(Command):
    """End a query and unlist the state that nobody else reads."""

    query: str


@dataclass(frozen=True)
class Rescale(Command):
    """Spread the state over another number of lanes."""

    lanes: int


@dataclass(frozen=True)
class Reshare(Command):
    """Let queries share what they join by another scheme, by its name."""

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
