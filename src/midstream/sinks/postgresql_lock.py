"""The locks of the PostgreSQL sink: who comes second waits for the first, but not for one that hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection

PATIENCE = 10
"""Seconds after which the session that holds a lock is ended."""

_WAIT = "SELECT set_config('lock_timeout', %s, true)"
_LOCK = "SELECT pg_advisory_xact_lock(hashtext(%s))"
_WAIT_AS_BEFORE = "SET LOCAL lock_timeout TO DEFAULT"
_END_ITS_HOLDER = """
    SELECT pg_terminate_backend(held.pid)
    FROM pg_locks AS held JOIN pg_stat_activity AS session USING (pid)
    WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
        AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND ((held.classid::bigint << 32) | held.objid::bigint) = hashtext(%s)::bigint
        AND session.usename = current_user AND held.pid <> pg_backend_pid()"""


def lock(connection: Connection[Any], name: str) -> None:
    """Hold the lock of this name until the transaction ends.

    A session of this user's that holds it for longer than `PATIENCE` is ended and its transaction rolled back: a
    program that was suspended in one would hold it for ever, even if another has gone on with its job meanwhile. What
    is rolled back is done again by the writer of the job's checkpoint. Raises psycopg's `LockNotAvailable` where
    another user's session does not let go.
    """
    from psycopg.errors import LockNotAvailable

    try:
        _take(connection, name)
    except LockNotAvailable:
        connection.execute(_END_ITS_HOLDER, (name,))
        _take(connection, name)


def _take(connection: Connection[Any], name: str) -> None:
    with connection.transaction():  # A savepoint: what waited in vain leaves the transaction as it was.
        connection.execute(_WAIT, (f"{PATIENCE}s",))
        connection.execute(_LOCK, (name,))
        connection.execute(_WAIT_AS_BEFORE)
