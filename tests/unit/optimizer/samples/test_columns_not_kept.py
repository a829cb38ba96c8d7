"""Columns that chunks do not have, because no query read them when they were written: their rows have NULL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from midstream.expr.expression import Column
from midstream.expr.functions import call
from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.links import reader
from midstream.optimizer.samples.strata import SampledSource


def test_they_read_as_nulls_of_their_type() -> None:
    two = np.array([0, 1])
    source = SampledSource(np.ones(2), {}, {}, {}, {"s": pa.nulls(2)}, Bounded.exactly(2), two, {})
    read = reader({"A": source}, {"A": two})
    column = Column(pa.string(), "A", "s")
    assert read(column) == pa.nulls(2, pa.string())
    assert call("eq", column, column).type == pa.bool_()
