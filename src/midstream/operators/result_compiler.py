"""Result operators by what they compile, an open set: each stands in one file with its `ResultCompiler`.

A query is a join and, perhaps, one thing on top of it: an aggregate, a difference, an outer join, lookups in static
tables. `compile_result` gives the operator that makes the answer of the join's results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import midstream.operators as package
from midstream.logical.query import Query
from midstream.model.discovery import discover
from midstream.model.errors import InternalError
from midstream.model.manifest import StaticTable
from midstream.operators.binding import Binding
from midstream.runtime.result_operator import ResultOperator
from midstream.state.specs import StateSpec


@dataclass(frozen=True)
class Asked:
    """A query to compile: its binding, the name that what it keeps is kept under, and the static tables as they are."""

    binding: Binding
    name: str
    tables: Mapping[str, StaticTable]

    @property
    def query(self) -> Query:
        """The query."""
        return self.binding.query

    @property
    def form(self) -> str:
        """The form of what the query has on top, empty without one."""
        return "" if self.query.on_top is None else self.query.on_top.form

    def joined(self) -> StateSpec:
        """The state of all results of the query's join."""
        return self.binding.state(self.query.aliases, "scan")


class ResultCompiler(ABC):
    """Compiles what stands on top of a query's join to a result operator.

    A class has a `name` of its own; `node` is what its queries have on top, None for nothing, and `takes` tells the
    compilers of one node apart, commonly by the `forms` of the node. Of this package exactly one takes each query; one
    of another package goes before it.
    """

    name: ClassVar[str]
    node: ClassVar[type | None]
    forms: ClassVar[tuple[str, ...]] = ()  # without any, those of all its node's queries

    def takes(self, asked: Asked) -> bool:
        """Whether it compiles this query, which has its node on top."""
        return not self.forms or asked.form in self.forms

    @abstractmethod
    def compile(self, asked: Asked) -> ResultOperator:
        """Return the operator of a query that it takes."""


@lru_cache(maxsize=1)
def compilers() -> tuple[ResultCompiler, ...]:
    """Every compiler of this room and of other packages (entry points of `midstream.result_operators`)."""
    return tuple(discover(package, ResultCompiler, "midstream.result_operators").values())


def compile_result(asked: Asked) -> ResultOperator:
    """Compile the operator that makes a query's answer of the results of its join."""
    top = asked.query.on_top
    kind = None if top is None else type(top)
    found = [one for one in compilers() if one.node is kind and one.takes(asked)]
    foreign = [one for one in found if not type(one).__module__.startswith(f"{package.__name__}.")]
    chosen = foreign or found
    if len(chosen) != 1:
        names = " and ".join(one.name for one in chosen) or "none"
        raise InternalError(
            f"exactly one result operator must answer this query, not {names}",
            place=asked.query.text,
            remedy="uninstall one of the packages" if foreign else "report it",
        )
    return chosen[0].compile(asked)
