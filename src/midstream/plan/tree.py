"""Plans as pure values: join trees, probing orders, eddies; their enumeration, and trees drawn as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import ClassVar, TypeVar

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
        found, waiting = list[Plan](), [self]
        while waiting:
            found.append(waiting.pop())
            waiting += found[-1].children()
        return reversed(found)

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

    @cached_property
    def _aliases(self) -> tuple[str, ...]:
        # A search asks every join of every tree for them.
        return self.left.aliases() + self.right.aliases()

    @override
    def aliases(self) -> tuple[str, ...]:
        return self._aliases

    @cached_property
    def _notation(self) -> str:
        return f"({self.left.notation()} {self.right.notation()})"

    @override
    def notation(self) -> str:
        return self._notation


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


T = TypeVar("T")


def draw(node: T, label: Callable[[T], str], children: Callable[[T], Sequence[T]]) -> str:
    """Draw a tree with one line per node, branches drawn with box characters."""
    lines = [label(node)]
    below = children(node)
    for at, child in enumerate(below):
        last = at == len(below) - 1
        first, *rest = draw(child, label, children).split("\n")
        lines.append(("└─ " if last else "├─ ") + first)
        lines += [("   " if last else "│  ") + line for line in rest]
    return "\n".join(lines)


def pretty(plan: Plan) -> str:
    """Draw a plan as a tree.

    >>> from midstream.plan.tree import Leaf
    >>> print(pretty(Join(Join(Leaf("A"), Leaf("B")), Leaf("C"))))
    join A B C
    ├─ join A B
    │  ├─ A
    │  └─ B
    └─ C
    """
    return draw(plan, _label, lambda part: part.children())


def _label(plan: Plan) -> str:
    if isinstance(plan, Form):
        return plan.name
    return f"join {' '.join(plan.aliases())}" if isinstance(plan, Join) else plan.notation()


def left_deep_trees(aliases: Sequence[str]) -> Iterator[Plan]:
    """Enumerate every left-deep tree, with the two lowest sources in one order only because joins are symmetric.

    >>> [p.notation() for p in left_deep_trees("ABC")]
    ['((A B) C)', '((A C) B)', '((B C) A)']
    """
    if len(aliases) == 1:
        yield Leaf(aliases[0])
        return
    place = {alias: i for i, alias in enumerate(aliases)}
    for order in permutations(aliases):
        if place[order[0]] < place[order[1]]:
            plan: Plan = Leaf(order[0])
            for alias in order[1:]:
                plan = Join(plan, Leaf(alias))
            yield plan


def bushy_trees(aliases: Sequence[str]) -> Iterator[Plan]:
    """Enumerate the join trees of any shape, left-deep ones included, each once up to the sides of its joins.

    There are (2n - 3)!! of them: 3 for three sources, 15 for four, 105 for five.

    >>> sum(1 for _ in bushy_trees("ABCD")), [p.notation() for p in bushy_trees("ABC")]
    (15, ['((A B) C)', '((A C) B)', '(A (B C))'])
    """
    if len(aliases) == 1:
        yield Leaf(aliases[0])
        return
    first, rest = aliases[0], list(aliases[1:])
    # The side that holds the first source is written left, so that mirror images are met once.
    for size in range(len(rest) - 1, -1, -1):
        for chosen in combinations(rest, size):
            others = [alias for alias in rest if alias not in chosen]
            for left in bushy_trees([first, *chosen]):
                for right in bushy_trees(others):
                    yield Join(left, right)
