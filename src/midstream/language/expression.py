"""Typed scalar expressions over the columns of one or more sources: frozen values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from typing_extensions import override

TIME_COLUMN = "_ts"
"""The pseudo-column that names a result's time when a query selects it."""


@dataclass(frozen=True)
class Expression:
    """A node of an expression tree; `type` is the Arrow type of its value."""

    type: pa.DataType

    def children(self) -> tuple[Expression, ...]:
        """The expressions this one is made of, left to right."""
        return ()

    def walk(self) -> Iterator[Expression]:
        """This expression and everything under it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()

    def columns(self) -> frozenset[Column]:
        """Every column the expression reads."""
        return frozenset(e for e in self.walk() if isinstance(e, Column))

    def aliases(self) -> frozenset[str]:
        """Every source the expression reads."""
        return frozenset(c.alias for c in self.columns())

    def text(self) -> str:
        """A canonical text: equal texts mean equal expressions."""
        raise NotImplementedError


@dataclass(frozen=True)
class Column(Expression):
    """A column of a source; the pseudo-column `_ts` of alias '' is the time of the result."""

    alias: str
    name: str

    @override
    def text(self) -> str:
        return f"{self.alias}.{self.name}" if self.alias else self.name


@dataclass(frozen=True)
class Literal(Expression):
    """A constant, as the Python value that Arrow accepts for `type`; None is NULL."""

    value: Any

    @override
    def text(self) -> str:
        return f"{self.value!r}::{self.type}"


@dataclass(frozen=True)
class Call(Expression):
    """A function or operator of the catalogue in `evaluate`, applied to arguments."""

    function: str
    arguments: tuple[Expression, ...]

    @override
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    @override
    def text(self) -> str:
        inner = ", ".join(a.text() for a in self.arguments)
        return f"{self.function}({inner})::{self.type}" if self.function == "cast" else f"{self.function}({inner})"
