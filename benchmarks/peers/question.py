"""What every peer must know of what is asked, whichever benchmark asks it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

import pyarrow as pa


class Question(Protocol):
    """Streams in batches, and one question about them in the words of each peer.

    `queries` are midstream's, by name; each may read those before it, and the answer is that of the last one. `tables`
    are static. The DuckDB text finds of each stream the columns of `duckdb_rows`. `spark_as_written` is a text that
    Spark refuses; `spark` is then what users fall back on, "" where there is nothing. Of the batches only the first
    `batches` are timed. Where types of equal answers differ among peers, they are compared `by_value`.
    """

    @property
    def name(self) -> str: ...
    @property
    def streams(self) -> Collection[str]: ...
    @property
    def tables(self) -> Mapping[str, pa.Table]: ...
    @property
    def queries(self) -> Mapping[str, str]: ...
    @property
    def duckdb(self) -> str: ...
    @property
    def duckdb_rows(self) -> Mapping[str, str]: ...
    @property
    def spark(self) -> str: ...
    @property
    def spark_as_written(self) -> str: ...
    @property
    def batches(self) -> int: ...
    @property
    def by_value(self) -> bool: ...
    def schema(self, stream: str) -> pa.Schema:
        """The columns of a stream."""
        ...

    def spark_schema(self, stream: str) -> str:
        """The columns of a stream as Spark's DDL."""
        ...

    def steps(self) -> Iterator[dict[str, pa.Table]]:
        """The batches, each with one table a stream."""
        ...
