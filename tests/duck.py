"""DuckDB where a test asks it anew for each case."""

from __future__ import annotations

from functools import cache

import duckdb


def database() -> duckdb.DuckDBPyConnection:
    """A connection of its own: what is registered, what is made TEMP and the time zone are seen by no other.

    All are to one database of one thread, for to make a database takes longer than ten queries of a test.
    """
    return _database().cursor()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
