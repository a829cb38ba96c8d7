"""The results of a chain in a step, and the queries that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from midstream.expr.expression import Expression
from midstream.model.sharing import Demands
from midstream.model.window import EVENT_TIME
from midstream.operators.need import column
from midstream.runtime.lane import Lane
from midstream.runtime.piece_writer import AgeRuns
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.base_state import TIME, clock_column
from midstream.state.combinations import Combinations, Words
from midstream.state.keys import stable_sort
from midstream.state.lineage import ARRIVED, LINEAGE, Lineage
from midstream.state.specs import RowsSpec

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Member:
    """A query of a chain: what it reads of each source, what it may see of the past, and its select list.

    It sees all rows that arrive from step `entered` on, and of others what `sees` and `from_step` say. Results from
    `past` on have no rows that it does not see (None: they always may). `filters` are its conditions by label, for a
    router that evaluates them; `outputs` tells select lists apart.
    """

    name: str
    since: int
    demands: Demands
    entered: int
    sees: str | int
    from_step: int
    past: int | None
    filters: Mapping[str, tuple[Expression, ...]]
    result_operator: ResultOperator
    outputs: str


class Results:
    """The results of a step in order of time, with internal columns of their rows, each fetched once.

    `age_runs`, and for each result its run's place in them (`run`), say between which ages it is, where that is known.
    `decided` counts the tests of a result against a window or a filter.
    """

    def __init__(
        self,
        lane: Lane,
        rows: Mapping[str, RowsSpec],
        lineages: Mapping[str, Lineage],
        found: Combinations,
        age_runs: AgeRuns = (),
        run: Words | None = None,
    ) -> None:
        self.lane, self.rows, self.lineages, self.found = lane, rows, lineages, found
        self.age_runs, self.run, self.decided = age_runs, run, 0
        self._columns: dict[tuple[str, str], Words] = {}
        self._ages: dict[str, Words] = {}

    def column(self, label: str, name: str) -> Words:
        """Fetch an internal column of a source's rows, by result."""
        if (label, name) not in self._columns:
            self._columns[label, name] = column(self.lane, self.rows[label], name, self.found)
        return self._columns[label, name]

    def passed(self, filters: Mapping[str, str]) -> Mask | None:
        """Find the results whose rows pass these filters; None for all of them."""
        mask: Mask | None = None
        for label, text in filters.items():
            if len(self.lineages[label].filters) > 1:
                here = (self.column(label, LINEAGE) >> self.lineages[label].bit(text)) & 1 != 0
                mask = here if mask is None else mask & here
        return None if mask is None or bool(mask.all()) else mask

    def age(self, label: str) -> Words:
        """Compute the age of a source's row when each result's last row came, in the units of its window."""
        if label not in self._ages:
            lineage = self.lineages[label]
            name = clock_column(lineage.clock)
            past = self.found.valid_from[lineage.clock] - self.column(label, name)
            self._ages[label] = past if lineage.kind == "range" else past + 1
        return self._ages[label]

    def levels(self, sizes: Sequence[Mapping[str, int]]) -> Words:
        """Find for each result the index of the first nested window that contains it; the number of windows if none.

        Results of chunks that lie in one slice as a whole are placed by their run: a route that was determined before
        (Wang §5.3), without a look at the result.
        """
        ends = {label: np.array([size[label] for size in sizes], np.int64) for label in sizes[0]}
        one = next(iter(ends.values()))
        if self.run is None or not all(np.array_equal(one, other) for other in ends.values()):
            self.decided += len(self.found)
            return _placed(ends, {label: self.age(label) for label in ends})
        least = np.searchsorted(one, [low for _, (low, _) in self.age_runs], "left")
        greatest = np.searchsorted(one, [high for _, (_, high) in self.age_runs], "left")
        levels = least[self.run]
        undecided = np.flatnonzero((least != greatest)[self.run])
        if len(undecided):
            self.decided += len(undecided)
            some = self if len(undecided) == len(levels) else self.at(undecided)
            levels[undecided] = _placed(ends, {label: some.age(label) for label in ends})
        return levels

    def at(self, places: Words) -> Results:
        """Select the results at these places."""
        return Results(self.lane, self.rows, self.lineages, self.found.take(places))

    def seen_by(self, member: Member) -> Mask | None:
        """Find the results of rows that a member sees; None for all."""
        if member.sees == "all" or not len(self.found):
            return None
        if member.past is not None and int(self.found.valid_from[EVENT_TIME].min()) >= member.past:
            return None
        mask: Mask | None = None
        for label in self.found.labels:
            arrived = self.column(label, ARRIVED)
            here = arrived >= member.from_step
            if isinstance(member.sees, int):
                # What arrives goes by its step: a row may be older than others that arrived before it.
                here &= (arrived >= member.entered) | (self.column(label, TIME) >= member.sees)
            if not here.all():
                mask = here if mask is None else mask & here
        return mask


def in_order(
    lane: Lane, rows: Mapping[str, RowsSpec], lineages: Mapping[str, Lineage], found: Combinations, age_runs: AgeRuns
) -> Results:
    """Sort the results by time."""
    runs, run = list(age_runs), None
    if runs and sum(count for count, _ in runs) == len(found):
        run = np.repeat(np.arange(len(runs)), [count for count, _ in runs])
    times = found.valid_from[EVENT_TIME]
    if len(times) > 1 and bool((times[1:] < times[:-1]).any()):
        order = stable_sort(times)[0]
        found, run = found.take(order), None if run is None else run[order]
    return Results(lane, rows, lineages, found, runs, run)


def _placed(ends: Mapping[str, Words], ages: Mapping[str, Words]) -> Words:
    found: Words | None = None
    for label, limits in ends.items():
        here = np.searchsorted(limits, ages[label], "left")
        found = here if found is None else np.maximum(found, here)
    assert found is not None
    return found


def table_of(results: Results, member: Member, here: Words) -> Answer:
    """Compute a select list over the results at these places."""
    found = results.found.take(here)
    times, result_operator = found.valid_from[EVENT_TIME], member.result_operator
    refs = Combinations(found.refs, {}, {})
    read = with_time(results.lane.reader(results.rows, refs), times)
    return result_operator.answer(result_operator.values(read, len(found)), times)
