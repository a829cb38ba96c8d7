"""Tables as HTML, for notebooks: every text is escaped, and nothing in them is run or fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

STYLE = "border-collapse:collapse;font-size:90%;margin:4px 0 10px"
CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"
NUMBER = CELL.replace("left", "right")


FEW = 8
"""Things of a field that are written out; of more it is said how many there are."""


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format a table with a title; columns of numbers alone are aligned right. No rows, no table.

    >>> html_table("", ["a"], [["<b>"]]).count("&lt;b&gt;"), html_table("", ["a"], [])
    (1, '')
    """
    if not rows:
        return ""
    numbers = [all(_is_number(row[at]) or row[at] is None for row in rows) for at in range(len(columns))]
    styles = [NUMBER if one else CELL for one in numbers]
    head = "".join(f'<th style="{style}">{escape(name)}</th>' for name, style in zip(columns, styles, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{style}">{cell(value)}</td>' for value, style in zip(row, styles, strict=True))
        + "</tr>"
        for row in rows
    )
    caption = f'<caption style="text-align:left;font-weight:bold">{escape(title)}</caption>' if title else ""
    return f'<table style="{STYLE}">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def html_fields(title: str, values: Mapping[str, Any]) -> str:
    """Format names and values, one below the other; those without a value are left out."""
    rows = [(name.replace("_", " "), value) for name, value in values.items() if value not in (None, "", (), [], {})]
    return html_table(title, ("", ""), [(name, _short(value)) for name, value in rows])


def cell(value: Any) -> str:
    """Format a value for a table, escaped.

    >>> cell(1234567), cell(None), cell("<a>"), cell(0.5)
    ('1,234,567', '-', '&lt;a&gt;', '0.5')
    """
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return escape(str(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any) -> Any:
    # Of many things a field shows the number.
    if isinstance(value, Mapping):
        return (
            ", ".join(f"{name} {_short(one)}" for name, one in value.items())
            if len(value) <= FEW
            else f"{len(value):,}"
        )
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) if len(value) <= FEW else f"{len(value):,}"
    return value
