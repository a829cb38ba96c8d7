"""How a user's predicate gets its name: checked, typed and registered."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from midstream.expr.functions import known_function
from midstream.expr.types import working_type
from midstream.expr.user_predicates import UserPredicate, register
from midstream.model.errors import LanguageError, QueryError
from midstream.sql.ddl import parse_ddl
from midstream.sql.dialect import Midstream

_OWN_WORDS = frozenset({"window", "every", "rows", "range", "except"})


def predicate(name: str, function: Callable[..., Any], *types: str | pa.DataType) -> UserPredicate:
    """Register a predicate of your own, so that queries can call it by name in their conditions.

    `types` lists the types of the arguments, as SQL types (`"DOUBLE"`, `"ARRAY<FLOAT>"`) or Arrow types. The function
    takes an Arrow array for each argument, and returns a boolean for each row: see `UserPredicate`. A predicate over
    one stream is a filter, and a predicate over two streams is a join condition. If a predicate reads three or more
    streams, midstream evaluates it for combinations of one row from each stream.

    >>> import pyarrow.compute as pc
    >>> predicate("longer_than", lambda text, size: pc.greater(pc.utf8_length(text), size), "VARCHAR", "INT").describe()
    'longer_than(VARCHAR, INTEGER)'
    """
    place = f"predicate {name}"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not _is_free(name.lower()):
        raise QueryError(
            f"{name!r} cannot be the name of a predicate",
            place=place,
            remedy="use a name such as is_similar: letters, digits and underscores, and not a keyword of SQL",
        )
    if not callable(function):
        raise QueryError(
            f"{function!r} is not a function", place=place, remedy="give a function that takes Arrow arrays"
        )
    if not types:
        raise QueryError(
            "the predicate has no argument", place=place, remedy="give the types of the arguments, such as 'DOUBLE'"
        )
    made = UserPredicate(name.lower(), function, tuple(_type(one, place) for one in types))
    register(made)
    return made


def _is_free(name: str) -> bool:
    """Return whether a name means nothing else: no function of the language, and none that the parser knows."""
    if known_function(name) is not None or name in _OWN_WORDS:
        return False
    try:
        tree = sqlglot.parse_one(f"SELECT 1 WHERE {name}(x, y)", read=Midstream)
    except SqlglotError:
        return False
    where = tree.args.get("where")
    return where is not None and type(where.this) is exp.Anonymous and where.this.name == name


def _type(one: str | pa.DataType, place: str) -> pa.DataType:
    if isinstance(one, pa.DataType):
        return working_type(one)
    try:
        (field,) = parse_ddl(f"argument {one}")
    except (LanguageError, ValueError) as error:
        remedy = error.remedy if isinstance(error, LanguageError) else "give one type for each argument"
        raise QueryError(f"{one!r} is not a type", place=place, remedy=remedy) from error
    return working_type(field.type)
