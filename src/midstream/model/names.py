"""What streams, static tables and queries may be called."""

from __future__ import annotations

from midstream.model.errors import QueryError


def check_name(what: str, name: object) -> None:
    """Raise QueryError unless the name is a non-empty text.

    Folders, chunks and queries name it, and an empty one stands for all queries where there are settings of one.

    >>> check_name("stream", "my orders")
    """
    try:
        fine = isinstance(name, str) and bool(name.encode())
    except UnicodeEncodeError:  # Half of a pair of surrogates, which no file can have in its name.
        fine = False
    if not fine:
        raise QueryError(
            f"a {what} cannot be called {name!r}", place=f"the name of a {what}", remedy="give it a text that is a name"
        )
