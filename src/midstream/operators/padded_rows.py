"""Rows of several sources side by side, of some of which there is none: the results of an outer join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.expression import Column
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations, Words
from midstream.state.gather import gather
from midstream.state.specs import RowsSpec

ABSENT = -1
"""The number of a row that is not there."""


@dataclass(frozen=True)
class PaddedRows:
    """By source label the numbers of rows, `ABSENT` where there is none; all columns int64 and of one length.

    >>> both, left = {"A": np.array([3]), "B": np.array([8])}, {"A": np.array([4, 5])}
    >>> rows = PaddedRows.of([left, both])
    >>> {label: refs.tolist() for label, refs in rows.take(np.array([2, 0])).refs.items()}
    {'A': [3, 4], 'B': [8, -1]}
    """

    refs: Mapping[str, Words]

    @staticmethod
    def of(parts: Sequence[Mapping[str, Words]]) -> PaddedRows:
        """The rows of all parts, in order; each part has its own sources."""
        counts = [len(next(iter(part.values()))) for part in parts]
        labels = dict.fromkeys(label for part in parts for label in part)

        def numbers(label: str) -> Words:
            return np.concatenate(
                [
                    part[label] if label in part else np.full(count, ABSENT)
                    for part, count in zip(parts, counts, strict=True)
                ]
            )

        return PaddedRows({label: numbers(label) for label in labels})

    def __len__(self) -> int:
        return len(next(iter(self.refs.values())))

    def take(self, places: Words) -> PaddedRows:
        """The rows at these places, each at most once."""
        return PaddedRows({label: gather(refs, places) for label, refs in self.refs.items()})

    def reader(self, lane: Lane, specs: Mapping[str, RowsSpec]) -> Callable[[Column], pa.Array]:
        """How an expression reads the columns of these rows: NULL where there is none."""
        refs, present = dict[str, Words](), dict[str, pa.Array]()
        for label, numbers in self.refs.items():
            there: npt.NDArray[np.bool_] = numbers != ABSENT
            if there.all():
                refs[label] = numbers
            elif there.any():  # Any row stands for those that are not there, and is not looked at.
                refs[label], present[label] = np.where(there, numbers, numbers[there.argmax()]), pa.array(there)
        of_rows = lane.reader(specs, Combinations(refs, {}, {}))
        padded: dict[Column, pa.Array] = {}

        def read(column: Column) -> pa.Array:
            if column.alias not in refs:
                return pa.nulls(len(self), column.type)
            if column.alias not in present:
                return of_rows(column)
            if column not in padded:
                values = of_rows(column)
                padded[column] = pc.if_else(present[column.alias], values, pa.scalar(None, values.type))
            return padded[column]

        return read
