"""The libraries that serve the dashboard are installed only where it is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from midstream.model.errors import MidstreamError


@contextmanager
def from_dashboard_extra() -> Iterator[None]:
    """Within this block libraries are imported that `midstream[dashboard]` installs.

    >>> with from_dashboard_extra():
    ...     import not_here
    Traceback (most recent call last):
    ...
    midstream.model.errors.MidstreamError: No module named 'not_here' (at dashboard). Remedy: pip install
        'midstream[dashboard]'
    """
    try:
        yield
    except ImportError as error:
        raise MidstreamError(str(error), place="dashboard", remedy="pip install 'midstream[dashboard]'") from error
