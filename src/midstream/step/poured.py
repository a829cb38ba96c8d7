"""The answers of a unit that go out in pieces while its root is still finding them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from midstream.runtime import piece_writer
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
        """Write the answer to a piece of the root's output."""
        self._put(self.unit.answer(self.lane, (found,), age_runs))

    def rest(self, deltas: Sequence[Combinations], age_runs: AgeRuns) -> dict[str, Answer]:
        """Return the answers of the step, except what has gone to the writer, which is counted in them.

        Many rows of what the root gives back go to the writer in parts first.
        """
        parts = self.unit.parts(self.lane, deltas, age_runs, piece_writer.PART)
        found = next(parts)
        for part in parts:
            self._put(found)
            found = part
        if self._rows:  # Whatever comes after pieces is a piece itself, or their order would not show.
            self._put(found)
            found = {query: Answer(one.table.slice(0, 0), one.times[:0]) for query, one in found.items()}
        return self._beside(found)

    def _put(self, answers: Mapping[str, Answer]) -> None:
        for query, answer in answers.items():
            if answer.dead is not None:
                self._dead[query] = together(self._dead.get(query), answer.dead)
            if answer.count:
                self._rows[query] = self._rows.get(query, 0) + answer.count
                self.writer.put(query, answer.table)

    def _beside(self, answers: Mapping[str, Answer]) -> dict[str, Answer]:
        return {
            query: replace(one, dead=together(self._dead.get(query), one.dead), poured=self._rows.get(query, 0))
            for query, one in answers.items()
        }
