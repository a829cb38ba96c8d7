"""Libraries that only a part of midstream needs, and that are installed only where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from midstream.model.errors import MidstreamError


def install(extra: str) -> str:
    """Return the remedy for a missing library of an extra. midstream is not on PyPI yet, so it names a clone.

    >>> install("spark")
    "in a clone of midstream, pip install '.[spark]'"
    """
    return f"in a clone of midstream, pip install '.[{extra}]'"


@contextmanager
def from_extra(
    extra: str, place: str, kind: type[MidstreamError] = MidstreamError, otherwise: str = ""
) -> Iterator[None]:
    """Raise an error of class `kind` if the `with` block imports a missing library.

    The error names the command that installs the library. `otherwise` is a second remedy in the message.

    >>> with from_extra("spark", "Job"):
    ...     import not_here
    Traceback (most recent call last):
    ...
    midstream.model.errors.MidstreamError: No module named 'not_here' (at Job). Remedy: in a clone
        of midstream, pip install '.[spark]'
    """
    try:
        yield
    except ImportError as error:
        remedy = install(extra) + (f", or {otherwise}" if otherwise else "")
        raise kind(str(error), place=place, remedy=remedy) from error
