"""The result operator of a plain query: its select list over the results of the step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from typing_extensions import override

from midstream.model.window import EVENT_TIME
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations
from midstream.state.gather import gather
from midstream.state.keys import stable_sort


@dataclass(frozen=True)
class ProjectOperator(ResultOperator):
    """Fetches the payload of each result once, in order of result time (max ordering, HybMig §2.1)."""

    @cached_property
    def _read_from(self) -> frozenset[str]:
        if self.dead_letters is not None:
            return frozenset(self.query.aliases)
        parts = [o.expression for o in self.query.outputs] + (
            [] if self.query.on_top is None else self.query.on_top.read()
        )
        return frozenset(c.alias for part in parts for c in part.columns())

    def in_order(self, deltas: Sequence[Combinations]) -> Combinations:
        """The results of the step in order of time, of the sources that are read."""
        (results,) = deltas
        times = results.begins_on(EVENT_TIME)
        # At least one source stays, for it says how many results there are.
        read = [label for label in results.labels if label in self._read_from] or results.labels[:1]
        refs = {label: results.numbers_of(label) for label in read}
        if np.count_nonzero(times[1:] < times[:-1]):
            order, ascending = stable_sort(times)
            times = ascending.view(np.int64)
            refs = {label: gather(words, order) for label, words in refs.items()}
        return Combinations(refs, {EVENT_TIME: times}, {})

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        return self.evaluated(lane, self.in_order(deltas))

    @override
    def parts(self, lane: Lane, deltas: Sequence[Combinations], most: int) -> Iterator[Answer]:
        results = self.in_order(deltas)
        for first in range(0, max(len(results), 1), most):
            yield self.evaluated(lane, results.take(slice(first, first + most)))

    def evaluated(self, lane: Lane, results: Combinations) -> Answer:
        """The answer of results in order of time."""
        dead = None
        if self.dead_letters is not None:
            results, dead = self.sorted_out(lane, results)
        times = results.valid_from[EVENT_TIME]
        read = with_time(lane.reader(self.rows, results), times)
        found = self.answer(self.values(read, len(results)), times)
        return found if dead is None else replace(found, dead=dead)


class ProjectCompiler(ResultCompiler):
    """Compiles a query whose answer is the results of its join."""

    name = "project"
    node = None

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return ProjectOperator(asked.query, asked.binding.rows(), ())
