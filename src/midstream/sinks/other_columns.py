"""What is said of a table whose columns are not those of a query's results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from midstream.model.errors import SinkError


def other_columns(differing: Iterable[str], place: str) -> SinkError:
    """Make the error for a table at a place; `differing` says column by column what differs."""
    return SinkError(
        f"the table's columns are not those of the results: {', '.join(differing)}",
        place=place,
        remedy="alter the table so that it has the results' columns, or name another table",
    )


def differing(table: Mapping[str, str], results: Mapping[str, str]) -> list[str]:
    """List what differs between the columns of a table and those of results, by name and type.

    >>> differing({"k": "long", "t": "date"}, {"k": "string", "s": "string"})
    ['k is long and should be string', 's is missing', 't is not of the results']
    """
    found = []
    for name in sorted(table.keys() | results.keys()):
        if name not in table:
            found.append(f"{name} is missing")
        elif name not in results:
            found.append(f"{name} is not of the results")
        elif table[name] != results[name]:
            found.append(f"{name} is {table[name]} and should be {results[name]}")
    return found
