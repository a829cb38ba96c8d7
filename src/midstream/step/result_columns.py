"""What a query's results look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from midstream.language.parse import parsed
from midstream.model.manifest import Manifest
from midstream.operators.difference import OPERATION
from midstream.step.operators import results_of


class AskedQuery(Protocol):
    """A query that runs or is to begin: its text, and the user's operator on top."""

    @property
    def sql(self) -> str:
        """The text."""

    @property
    def operator(self) -> Mapping[str, Any] | None:
        """The operator, as a manifest keeps it."""


def result_columns(manifest: Manifest, entry: AskedQuery) -> pa.Schema:
    """The columns of a query's results."""
    query = parsed(manifest, entry.sql)
    if entry.operator is not None:
        return results_of(query, entry.operator)
    columns = pa.schema([(output.name, output.expression.type) for output in query.outputs])
    return columns if query.difference is None else columns.append(pa.field(OPERATION, pa.string()))
