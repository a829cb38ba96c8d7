"""By what two ways of answering the same queries are known to give the same results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.plan_change.answer import marks


@dataclass(frozen=True)
class Answer:
    """How many results all queries had in a step, and a sum of hashes over query and row, whatever their order."""

    rows: int
    mark: int


def answer(results: Mapping[str, pa.Table]) -> Answer:
    """The answer of a step.

    >>> one, other = pa.table({"a": [1, 2]}), pa.table({"a": [2, 1]})
    >>> answer({"p": one}) == answer({"p": other})
    True
    >>> answer({"p": one, "q": one.slice(1)}) == answer({"p": one.slice(1), "q": one})
    False
    """
    names = sorted(name for name, table in results.items() if table.num_rows)
    if not names:
        return Answer(0, 0)
    together = pa.concat_tables([results[name] for name in names])
    counts = [results[name].num_rows for name in names]
    owner = np.repeat([int.from_bytes(name.encode()[-7:]) for name in names], counts)
    found = marks(together.append_column("_query", pa.array(owner)))
    return Answer(together.num_rows, int(found.sum(dtype=np.uint64)))
