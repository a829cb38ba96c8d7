"""Plans as pure values: join trees, probing orders, eddies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

_PLAIN = re.compile(r"[^\s()\[\]:|,\"]+")


def noted(alias: str) -> str:
    """Format a source for plan notation: in double quotes where its name contains characters of the notation.

    >>> noted("A"), noted("my orders"), noted('7" nails')
    ('A', '"my orders"', '"7"" nails"')
    """
    quotes = '"' + alias.replace('"', '""') + '"'
    return alias if _PLAIN.fullmatch(alias) else quotes


@dataclass(frozen=True)
class Plan:
    """How a query's sources are brought together."""

    def aliases(self) -> tuple[str, ...]:
        """List the sources in the order in which the notation names them."""
        raise NotImplementedError

    def children(self) -> tuple[Plan, ...]:
        """Return the plans right below, left to right."""
        return ()

    def walk(self) -> Iterator[Plan]:
        """Walk this plan and everything below it, children first."""
        for child in self.children():
            yield from child.walk()
        yield self

    def notation(self) -> str:
        """Format the plan in plan notation; `plan.notation.parse_plan` reads it back."""
        raise NotImplementedError


@dataclass(frozen=True)
class Leaf(Plan):
    """A source."""

    alias: str

    @override
    def aliases(self) -> tuple[str, ...]:
        return (self.alias,)

    @override
    def notation(self) -> str:
        return noted(self.alias)


@dataclass(frozen=True)
class Common(Plan):
    """A subplan that two plans have in common, where only what stands above it matters (HybMig §3.1).

    >>> Join(Common(("A", "B")), Leaf("C")).notation()
    '(A+B C)'
    """

    sources: tuple[str, ...]

    @override
    def aliases(self) -> tuple[str, ...]:
        return self.sources

    @override
    def notation(self) -> str:
        return "+".join(map(noted, self.sources))


@dataclass(frozen=True)
class Join(Plan):
    """A binary window join of two subplans.

    >>> Join(Join(Leaf("A"), Leaf("B")), Leaf("C")).notation()
    '((A B) C)'
    """

    left: Plan
    right: Plan

    @override
    def children(self) -> tuple[Plan, ...]:
        return (self.left, self.right)

    @override
    def aliases(self) -> tuple[str, ...]:
        return self.left.aliases() + self.right.aliases()

    @override
    def notation(self) -> str:
        return f"({self.left.notation()} {self.right.notation()})"


@dataclass(frozen=True)
class MultiJoin(Plan):
    """A multi-way join without intermediate state: for each input, the order in which the others are probed.

    >>> MultiJoin((("A", ("B", "C")), ("B", ("A", "C")), ("C", ("A", "B")))).notation()
    '[A: B C | B: A C | C: A B]'
    """

    orders: tuple[tuple[str, tuple[str, ...]], ...]

    @override
    def aliases(self) -> tuple[str, ...]:
        return tuple(alias for alias, _ in self.orders)

    @override
    def notation(self) -> str:
        return "[" + " | ".join(f"{noted(alias)}: {' '.join(map(noted, order))}" for alias, order in self.orders) + "]"


@dataclass(frozen=True)
class Eddy(Plan):
    """No fixed tree: an eddy over one SteM per source, which routes each batch of rows by a policy (JISC §3.1).

    >>> Eddy(("A", "B", "C")).notation(), Eddy(("A", "B"), "rank").notation()
    ('eddy(A B C)', 'eddy:rank(A B)')
    """

    sources: tuple[str, ...]
    policy: str = "lottery"
    policies: ClassVar[tuple[str, ...]] = ("lottery", "rank")

    @override
    def aliases(self) -> tuple[str, ...]:
        return self.sources

    @override
    def notation(self) -> str:
        policy = "" if self.policy == Eddy.policies[0] else f":{self.policy}"
        return f"eddy{policy}({' '.join(map(noted, self.sources))})"


STAIRS = "stairs"
"""The form of an eddy whose join state is kept; its tree is the routing of the present (STAIRs, JISC §3.2)."""


@dataclass(frozen=True)
class Form(Plan):
    """A tree of joins that is run in another way, by the operator of that name.

    >>> Form(STAIRS, Join(Leaf("A"), Leaf("B"))).notation()
    'stairs((A B))'
    """

    name: str
    tree: Plan

    @override
    def children(self) -> tuple[Plan, ...]:
        return (self.tree,)

    @override
    def aliases(self) -> tuple[str, ...]:
        return self.tree.aliases()

    @override
    def notation(self) -> str:
        return f"{self.name}({self.tree.notation()})"


def joins(plan: Plan) -> Iterator[Join]:
    """List every join of a tree, including one inside a form, children before parents."""
    return (part for part in plan.walk() if isinstance(part, Join))
