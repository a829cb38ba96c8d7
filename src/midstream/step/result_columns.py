"""What a query's results look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from midstream.language.parse import parsed
from midstream.model.manifest import Manifest, QueryEntry
from midstream.operators.difference import OPERATION
from midstream.step.operators import results_of

if TYPE_CHECKING:
    from midstream.step.commands.add_query import AddQuery


def result_columns(manifest: Manifest, entry: QueryEntry | AddQuery) -> pa.Schema:
    """The columns of a query's results."""
    query = parsed(manifest, entry.sql)
    if entry.operator is not None:
        return results_of(query, entry.operator)
    columns = pa.schema([(output.name, output.expression.type) for output in query.outputs])
    return columns if query.difference is None else columns.append(pa.field(OPERATION, pa.string()))
