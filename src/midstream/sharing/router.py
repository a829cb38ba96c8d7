"""The routers of the baselines: each result is held against each query's window and filter (Wang §4.1, §4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from midstream.language.evaluate import holds
from midstream.runtime.result_operator import Answer
from midstream.sharing.member import Member
from midstream.sharing.results import Mask, Results, table_of
from midstream.state.combinations import Combinations, Words
from midstream.state.keys import stable_order


def routed(results: Results, member: Member) -> Answer:
    """A member's answer: a test of every result against its windows, then of what is left against its filters."""
    at = within(results, member)
    for conditions in member.filters.values():
        for condition in conditions:
            results.decided += len(at)
            held = Combinations(results.found.take(at).refs, {}, {})
            at = at[holds(condition, results.lane.reader(results.rows, held), len(at))]
    return table_of(results, member, at)


def within(results: Results, member: Member) -> Words:
    """The results within a member's windows, of rows that it sees."""
    mask: Mask = np.ones(len(results.found), np.bool_)
    for label, size in member.want.sizes.items():
        mask &= results.age(label) <= size
    results.decided += len(mask)
    seen = results.seen_by(member)
    return np.flatnonzero(mask if seen is None else mask & seen)


def merged(answers: Sequence[Answer]) -> Answer:
    """The answers of disjoint joins as one, in order of time (the order-preserving union of Wang §4.2)."""
    if len(answers) == 1:
        return answers[0]
    times = np.concatenate([answer.times for answer in answers])
    order = stable_order(times)
    table = pa.concat_tables([answer.table for answer in answers]).take(pa.array(order))
    return Answer(table.combine_chunks(), times[order])
