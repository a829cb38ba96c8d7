"""Whether a table of PostgreSQL takes columns of results, as far as that can be told before there are values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Identifier

_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod), typname, typcategory,
        attnotnull AND NOT atthasdef AND attidentity = ''
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"""

TEXTS = "S"
"""The category of types (PostgreSQL documentation, `pg_type.typcategory`) that take whatever is written."""

OF_VALUES = "BNDT"
"""Those of booleans, numbers, dates and spans of time, which take nothing of another one."""

WHOLE = ("int2", "int4", "int8")

_CATEGORIES = {
    "boolean": "B",
    "smallint": "N",
    "integer": "N",
    "bigint": "N",
    "numeric": "N",
    "real": "N",
    "double precision": "N",
    "date": "D",
    "time": "D",
    "timestamp": "D",
    "timestamptz": "D",
    "interval": "T",
}


def differing_columns(connection: Connection[Any], table: Identifier, results: Mapping[str, str]) -> list[str]:
    """List what differs between the columns of a table and those of results, by name and the type created for them.

    A column of the table that is not of the results does not differ where it may be NULL or has a default. Whether a
    text is one of an enumeration, or a number is in range, only values show.
    """
    rows = connection.execute(_COLUMNS, (table.as_string(connection),)).fetchall()
    has = {name: (shown, kind, category) for name, shown, kind, category, _ in rows}
    found = [f"{name} is missing" for name in results if name not in has]
    for name, given in results.items():
        if name in has and not _takes(*has[name][1:], given):
            found.append(f"{name} is {has[name][0]} and should be {given}")
    wanted = [name for name, *_, is_wanted in rows if is_wanted and name not in results]
    return [*found, *(f"{name} must not be NULL and is not of the results" for name in wanted)]


def _takes(kind: str, category: str, given: str) -> bool:
    # `given` is the type that a column for the results would be created with.
    name = given.partition("(")[0]
    other = _CATEGORIES.get(name)
    if category == TEXTS or (other is None and category not in OF_VALUES):
        return True
    fractions = name in ("real", "double precision") or (name == "numeric" and not given.endswith(("(20)", ", 0)")))
    return category == other and not (kind in WHOLE and fractions)
