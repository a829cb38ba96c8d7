"""What a function of the language is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from midstream.expr.expression import Call
from midstream.expr.kernels.datum import Datum
from midstream.expr.rules import Rule, counted

MANY = 10_000
"""The most arguments of a function that takes any number."""


@dataclass(frozen=True)
class Function:
    """How a function is typed and computed; the kernel takes the result type and the arguments.

    `fails` says of a call whether it may fail to be evaluated: then its kernel gives NULL where it does, and nowhere
    else but where an argument is NULL.
    """

    rule: Rule
    kernel: Callable[..., Datum]
    fails: Callable[[Call], bool] | None = None


def fixed(count: int, rule: Rule, kernel: Callable[..., Datum]) -> Function:
    """Build a function that takes exactly `count` arguments."""
    return Function(counted(count, count, rule), kernel)
