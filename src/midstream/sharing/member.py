"""A query that runs in a chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midstream.language.expression import Expression
from midstream.operators.need import Want
from midstream.runtime.result_operator import ResultOperator


@dataclass(frozen=True)
class Member:
    """A query of a chain: what it wants of the chain's results, what it may see of the past, and its select list.

    Results from `past` on have no rows that it does not see (None: they always may). `filters` are its conditions by
    label, for a router that evaluates them; `outputs` tells select lists apart.
    """

    name: str
    since: int
    want: Want
    joined: int
    sees: str | int
    past: int | None
    filters: Mapping[str, tuple[Expression, ...]]
    result_operator: ResultOperator
    outputs: str
