"""The plans of HybMig Table 4 over any streams; JISC's are left-deep, too."""

from __future__ import annotations

from collections.abc import Sequence


def left_deep(names: Sequence[str]) -> str:
    """The extreme left-deep plan.

    >>> left_deep("ABCD")
    '(((A B) C) D)'
    """
    plan = names[0]
    for name in names[1:]:
        plan = f"({plan} {name})"
    return plan


def right_deep(names: Sequence[str]) -> str:
    """The extreme right-deep plan.

    >>> right_deep("ABCD")
    '(A (B (C D)))'
    """
    return names[0] if len(names) == 1 else f"({names[0]} {right_deep(names[1:])})"


def bushy(names: Sequence[str]) -> str:
    """The right-deep plan with the streams number n - 4 and n - 3, counted from 0, joined first (§5.1).

    >>> bushy("ABCD"), bushy("ABCDEF")
    ('((A B) (C D))', '(A (B ((C D) (E F))))')
    """
    plan = f"({right_deep(names[-4:-2])} {right_deep(names[-2:])})"
    for name in reversed(names[:-4]):
        plan = f"({name} {plan})"
    return plan


def sharing(names: Sequence[str]) -> str:
    """The left-deep plan with its last two streams joined first (§5.2).

    >>> sharing("ABCDEF")
    '((((A B) C) D) (E F))'
    """
    return f"({left_deep(names[:-2])} {right_deep(names[-2:])})"
