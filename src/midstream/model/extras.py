"""Libraries that only a part of midstream needs, and that are installed only where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from midstream.model.errors import MidstreamError


@contextmanager
def from_extra(extra: str, place: str, kind: type[MidstreamError] = MidstreamError) -> Iterator[None]:
    """Within this block libraries are imported that the extra `midstream[extra]` installs.

    Where one is missing an error of this `kind` is raised that says what to install.

    >>> with from_extra("spark", "Job"):
    ...     import not_here
    Traceback (most recent call last):
    ...
    midstream.model.errors.MidstreamError: No module named 'not_here' (at Job). Remedy: pip install 'midstream[spark]'
    """
    try:
        yield
    except ImportError as error:
        raise kind(str(error), place=place, remedy=f"pip install 'midstream[{extra}]'") from error
