"""An answer made ready to be compared with many outputs, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from tests.oracle.answer import Answer
from tests.oracle.compare import Row, assert_each_step_same, assert_ordered, rows


class Expected:
    """What a query must put out, and in which step."""

    def __init__(self, answer: Answer, steps: int) -> None:
        self.answer = answer
        self.by_step: list[Counter[Row]] = [Counter() for _ in range(steps)]
        for step, row in zip(answer.steps, rows(answer.table), strict=True):
            self.by_step[step][row] += 1

    def check(self, found: Sequence[pa.Table], *, in_order: bool, label: str) -> None:
        """Fail unless every step puts out its rows, in order of time; a query that came late has no first tables."""
        late = len(self.by_step) - len(found)
        whole = [*([None] * late), *found]
        if self.answer.approximate or not all(map(self._is_right, range(late, len(whole)), found)):
            assert_each_step_same(whole, self.answer, label)
        assert_ordered(found, throughout=in_order, label=label)

    def check_total(self, found: Sequence[pa.Table], *, complete: bool, label: str) -> None:
        """Fail unless every row is put out once, none too early; unless `complete`, some may still be held back."""
        due: Counter[Row] = Counter()
        for step, table in enumerate(found):
            due += self.by_step[step]
            early = Counter(rows(table)) - due
            assert not early, f"{label} step {step}: too many or too early: {early}"
            due -= Counter(rows(table))
        assert not (complete and due), f"{label}: missing {due}"
        assert_ordered(found, throughout=False, label=label)

    def _is_right(self, step: int, table: pa.Table) -> bool:
        same_names = table.column_names == self.answer.table.column_names
        return same_names and Counter(rows(table)) == self.by_step[step]
