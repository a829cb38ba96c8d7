"""DSTREAM and RSTREAM: the results of a join when they have left the relation, or all that are in it at instants.

The results with their lifetimes are the state, as an aggregate's are. A result is in the relation from its time T up to
the last microsecond at which all its rows are in their windows; it leaves in the microsecond after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.logical.query import Aggregate
from midstream.model.window import EVENT_TIME
from midstream.operators.aggregate import AggregateOperator
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations, Words, concatenate, indices
from midstream.state.keys import stable_sort
from midstream.state.sorted_run import SortedRun


@dataclass(frozen=True)
class DstreamOperator(ResultOperator):
    """Gives each result once, when the watermark passes the first microsecond at which it is not in the relation."""

    @override
    @property
    def slack(self) -> int:
        # What ended at the last watermark still has to be seen leaving.
        return 1

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        state = lane.join(self.kept[0])
        state.insert(SortedRun(None, deltas[0]))
        begin, end = self.span(lane)
        whole = concatenate([*(run.combinations for run in state.old), deltas[0]])
        ends = self.ends(lane, whole)
        # A row may be pushed out of a ROWS window by one of its own time, before any instant has seen the result.
        left = indices((ends >= begin - 1) & (ends < end - 1) & (ends >= whole.valid_from[EVENT_TIME]))
        order = stable_sort(ends[left])[0]
        return _shown(self, lane, whole.take(left[order]), ends[left[order]] + 1)


@dataclass(frozen=True)
class RstreamOperator(AggregateOperator):
    """Gives at each instant all results that are alive then."""

    @override
    def _grouped(self, lane: Lane, alive: Combinations, at: Words, instants: Words) -> Answer:
        order = stable_sort(instants)[0]
        return _shown(self, lane, alive.take(at[order]), instants[order])


def _shown(operator: ResultOperator, lane: Lane, results: Combinations, times: Words) -> Answer:
    read = with_time(lane.reader(operator.rows, results), times)
    kept, dead = operator.judged(read, times)
    found = operator.answer(operator.values(read, len(times)), times)
    if kept is None:
        return replace(found, dead=dead)
    return Answer(found.table.filter(pa.array(kept)), times[np.flatnonzero(kept)], dead)


class RelationCompiler(ResultCompiler):
    """Compiles what streams the relation of a join."""

    name = "relation"
    node = Aggregate
    forms = ("dstream", "rstream")

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        kind = DstreamOperator if asked.form == "dstream" else RstreamOperator
        return kind(asked.query, asked.binding.rows(), (asked.joined(),))
