"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(names: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> str:
    """A table; `align` has a letter for each column, `l` or `r`.

    >>> print(table(("who", "rows"), "lr", [("we", "7")]), end="")
    | who | rows |
    |---|--:|
    | we | 7 |
    """
    lines = [
        f"| {' | '.join(names)} |",
        f"|{'|'.join('--:' if side == 'r' else '---' for side in align)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"
