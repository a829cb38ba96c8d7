"""What `make test` leaves to `make verify`: files and folders, each with what `make test` runs of it all the same.

These tests get the marker `verify`, as four fifths of every random suite have it. Plain `pytest` selects as `make test`
does (`-m "not verify and not soak"`), among all files or among those that are named; `pytest -m verify` runs the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

VERIFY: Mapping[str, tuple[str, ...]] = {
    "tests/spark/": (),
}
"""For a path the beginnings of what stays in `make test`, relative to it: its first look."""


def only_in_verify(nodeid: str) -> bool:
    """Tell whether a test belongs to `make verify` alone."""
    for path, kept in VERIFY.items():
        if nodeid.startswith(path):
            return not nodeid[len(path) :].startswith(kept)
    return False
