"""Which rules of the language the queries of a job keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class LanguageRules:
    """The rules of the language that changed while there were jobs; one that began before goes on by the former rule,
    for its state and its sinks are of those types.

    `checked`: arithmetic widens, and what cannot be evaluated is a dead letter; before, it was NULL. `utc_results`: the
    time of a result is in UTC, whatever its streams' times are, as it was before it had a type like theirs.
    `partial_sums`: of a tumbling window that goes on its groups are kept, where they can be; before, all of its rows.
    `edges`: a few casts and functions whose value some type has not, or that would be too long a text, cannot be
    evaluated either, and what no value can be cast to is refused; before, they were NULL.
    """

    checked: bool = True
    utc_results: bool = False
    partial_sums: bool = True
    edges: bool = True

    @property
    def strict(self) -> bool:
        """Whether all that cannot be evaluated is told apart from NULL."""
        return self.checked and self.edges


PRESENT = LanguageRules()
"""The rules of a job that begins now."""


@lru_cache(maxsize=16)
def rules_of(checked: bool, utc_results: bool, partial_sums: bool, edges: bool) -> LanguageRules:
    """The rules of these four, made once: a step asks for them often."""
    return LanguageRules(checked, utc_results, partial_sums, edges)
