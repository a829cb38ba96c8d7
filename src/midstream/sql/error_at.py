"""Errors about a node of a query's tree, which name its place in the text."""

from __future__ import annotations

from sqlglot import exp

from midstream.model.errors import LanguageError
from midstream.sql.place import place_of


def error_at(text: str, node: exp.Expr, message: str, remedy: str) -> LanguageError:
    """The error to raise for a node of a text.

    >>> import sqlglot
    >>> print(error_at("SELECT a, b", sqlglot.parse_one("SELECT a, b").expressions[1], "unknown column", "use a"))
    unknown column (at line 1, column 11). Remedy: use a
    """
    return LanguageError(message, place=place_of(text, node), remedy=remedy)


def not_in_language(text: str, node: exp.Expr, what: str, remedy: str) -> LanguageError:
    """The error to raise for a node of what SQL has and this language has not."""
    return error_at(text, node, f"{what} is not part of the language", remedy)
