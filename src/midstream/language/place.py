"""Where in a text something stands."""

from __future__ import annotations

import re

from sqlglot import exp


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
    around: exp.Expr | None = node
    while around is not None:
        offset = offset_of(around)
        if offset is not None:
            return place(text, offset)
        around = around.parent
    return place(text, 0)
