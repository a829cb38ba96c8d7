"""Where in a text something stands."""

from __future__ import annotations

import re
from typing import TypeVar

from sqlglot import exp

from midstream.model.errors import LanguageError


def place(text: str, offset: int) -> str:
    """The line and column of an offset, both from 1, as errors name them.

    >>> place("SELECT 1\\nFROM A", 14)
    'line 2, column 6'
    """
    before = text[: max(0, min(offset, len(text)))]
    return f"line {before.count(chr(10)) + 1}, column {len(before) - (before.rfind(chr(10)) + 1) + 1}"


def offset_of(node: exp.Expr) -> int | None:
    """The offset at which the text of a sqlglot node begins, as far as sqlglot remembers it."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts) if starts else None


def word_at(text: str, node: exp.Expr, *, called: bool = False) -> str:
    """The name that the user wrote where a node stands; '' where there is none, or none that is `called`.

    >>> import sqlglot
    >>> text = "SELECT NVL(a, 1)"
    >>> word_at(text, sqlglot.parse_one(text).expressions[0])
    'NVL'
    """
    offset = offset_of(node)
    found = re.match(r"[A-Za-z_]\w*" + (r"(?=\s*\()" if called else ""), text[offset:]) if offset is not None else None
    return found[0] if found else ""


def place_of(text: str, node: exp.Expr) -> str:
    """The place of a sqlglot node, or of the nearest node above it that sqlglot remembers.

    >>> import sqlglot
    >>> place_of("SELECT a, b", sqlglot.parse_one("SELECT a, b").expressions[1])
    'line 1, column 11'
    """
    return place(text, offset_above(node))


def offset_above(node: exp.Expr) -> int:
    """The offset of a node, or of the nearest one above it of which it is known."""
    around: exp.Expr | None = node
    while around is not None:
        if (offset := offset_of(around)) is not None:
            return offset
        around = around.parent
    return 0


def begin_of(select: exp.Expr) -> int:
    """The offset at which a SELECT begins, as far as it was written."""
    return int(select.meta["begin"]) if "begin" in select.meta else offset_above(select)


NodeT = TypeVar("NodeT", bound=exp.Expr)


def standing_at(made: NodeT, node: exp.Expr) -> NodeT:
    """Give what was made for a node the node's place, in all its parts that have none."""
    offset = begin_of(node)
    for part in made.walk():
        part.meta.setdefault("start", offset)
    return made


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
