"""What a query's results look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from midstream.language.query import Query
from midstream.operators.difference import OPERATION
from midstream.step.operators import results_of


def result_columns(query: Query, operator: Mapping[str, Any] | None) -> pa.Schema:
    """The columns of a query's results, with a user's operator on top or without."""
    if operator is not None:
        return results_of(query, operator)
    columns = pa.schema([(output.name, output.expression.type) for output in query.outputs])
    return columns if query.difference is None else columns.append(pa.field(OPERATION, pa.string()))
