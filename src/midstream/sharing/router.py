"""The router of selection pull-up: each result is held against each query's window and filter (Wang §4.1)."""

from __future__ import annotations

import numpy as np

from midstream.language.evaluate import holds
from midstream.operators.outlet import Answer
from midstream.sharing.member import Member
from midstream.sharing.results import Mask, Results, table_of
from midstream.state.combinations import Combinations


def routed(results: Results, member: Member) -> Answer:
    """A member's answer: a test of every result against its windows, then of what is left against its filters."""
    mask: Mask = np.ones(len(results.found), np.bool_)
    for label, size in member.want.sizes.items():
        mask &= results.age(label) <= size
    results.decided += len(mask)
    seen = results.seen_by(member)
    at = np.flatnonzero(mask if seen is None else mask & seen)
    for conditions in member.filters.values():
        for condition in conditions:
            results.decided += len(at)
            held = Combinations(results.found.take(at).refs, {}, {})
            at = at[holds(condition, results.lane.reader(results.rows, held), len(at))]
    return table_of(results, member, at)
