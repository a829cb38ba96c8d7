"""Libraries that some sinks need and that are installed only where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from midstream.model.errors import SinkError


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Within this block libraries are imported that the extra `midstream[extra]` installs.

    >>> with from_extra("delta"):
    ...     import not_here
    Traceback (most recent call last):
    ...
    midstream.model.errors.SinkError: No module named 'not_here' (at sink). Remedy: pip install 'midstream[delta]'
    """
    try:
        yield
    except ImportError as error:
        raise SinkError(str(error), place="sink", remedy=f"pip install 'midstream[{extra}]'") from error
