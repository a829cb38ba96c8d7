"""Commands to a running job, as logs and manifests keep them; the kinds are in `step.commands`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from midstream.model.allowed import allow_operators
from midstream.model.codec import Tagged
from midstream.model.errors import QueryError

COMMANDS = "midstream.commands"
"""The group of entry points by which other packages declare commands, with the events that report them."""


@dataclass(frozen=True)
class Command(Tagged, tag="command", group=COMMANDS):
    """A request to a job, which takes it at the beginning of a step."""

    @property
    def chunks(self) -> tuple[str, ...]:
        """The names of the chunks that the command brings, which must stay in the store until it is taken."""
        return ()


def declare_operator(path: str | None, options: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Encode a user's operator for commands; from then on the program allows the operator that it names.

    >>> declare_operator("shop.operators:Median", {"every": 5})
    {'class': 'shop.operators:Median', 'options': {'every': 5}}
    """
    if path is None:
        if options:
            raise QueryError("options of no operator", place="operator_options", remedy="name the operator too")
        return None
    if not isinstance(path, str) or not path:
        remedy = "write it as package.module:Class"
        raise QueryError(f"{path!r} names no operator", place="operator", remedy=remedy)
    given = named_options(options, "operator_options")
    allow_operators(path)
    return {"class": path, "options": given}


def named_options(options: object, place: str) -> dict[str, Any]:
    """Copy options for a command; raises QueryError where the value at this `place` is no mapping."""
    if options is not None and not isinstance(options, Mapping):
        remedy = 'write them as {"name": value}'
        raise QueryError(f"a {type(options).__name__} is no mapping of options", place=place, remedy=remedy)
    return dict(options or {})
