"""Trees drawn as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from midstream.plan.tree import Form, Join, Plan

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
