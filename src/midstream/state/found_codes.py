"""The codes by which a join has found combinations: a join above it, by the same key, need not read that once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from midstream.language.expression import Expression
from midstream.state.combinations import Combinations, Words
from midstream.state.keys import Codes
from midstream.state.sorted_run import SortedRun

Key = tuple[Expression, ...]


class CodesTaken(NamedTuple):
    """Codes of several runs, each at some places, and of these the `kept` ones; None for all."""

    pieces: Sequence[tuple[SortedRun, Words]]
    kept: Words | None


class FoundCodes(NamedTuple):
    """The codes of what a hash join found, under the key of either side: put together when they are asked for."""

    found: Combinations
    keys: tuple[Key, Key]
    taken: Sequence[CodesTaken]

    def under(self, key: Key, combinations: Combinations) -> Codes | None:
        """Return the code of each combination under a key; None for other combinations or another key."""
        if combinations is not self.found or key not in self.keys:
            return None
        columns = []
        for pieces, kept in self.taken:
            codes = np.concatenate([run.codes.take(at) for run, at in pieces if run.codes is not None])
            columns.append(codes if kept is None else codes.take(kept))
        return columns[0] if len(columns) == 1 else np.concatenate(columns)
