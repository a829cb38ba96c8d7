"""One PostgreSQL server for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgresql import Server, server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    with server() as begun:
        yield begun
