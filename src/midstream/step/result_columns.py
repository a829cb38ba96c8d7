"""What a query's results look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from midstream.language.query import Query
from midstream.step.operators import results_of


def result_columns(query: Query, operator: Mapping[str, Any] | None) -> pa.Schema:
    """Return the columns of a query's results, with a user's operator on top or without."""
    if operator is not None:
        return results_of(query, operator)
    return query.answer_columns()
