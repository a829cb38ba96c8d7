"""The answers of a unit that go out in pieces while its root is still finding them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from midstream.runtime.dead_letters import together
from midstream.runtime.lane import Lane
from midstream.runtime.piece_writer import AgeRuns, PieceWriter
from midstream.runtime.result_operator import Answer
from midstream.state.combinations import Combinations
from midstream.step.unit import Unit


@dataclass
class Poured:
    """What of a unit's answers has gone to the writer in this step; dead letters are kept, for they have no order."""

    unit: Unit
    lane: Lane
    writer: PieceWriter
    _rows: dict[str, int] = field(default_factory=dict)
    _dead: dict[str, pa.Table] = field(default_factory=dict)

    def take(self, found: Combinations, age_runs: AgeRuns) -> None:
        """Answer with a piece of the root's output."""
        for query, answer in self.unit.answer(self.lane, (found,), age_runs).items():
            if answer.dead is not None:
                self._dead[query] = together(self._dead.get(query), answer.dead)
            if answer.count:
                self._rows[query] = self._rows.get(query, 0) + answer.count
                self.writer.put(query, answer.table)

    def beside(self, answers: Mapping[str, Answer]) -> dict[str, Answer]:
        """The answers of the step, with what is not in them any more counted."""
        return {
            query: replace(one, dead=together(self._dead.get(query), one.dead), poured=self._rows.get(query, 0))
            for query, one in answers.items()
        }
