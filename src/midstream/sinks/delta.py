"""A Delta table as a sink: the rows of a step and the number of the step in one commit.

The step goes into the commit as an application transaction (Delta protocol, "Transaction Identifiers"): a table knows
of each application the version it is at, and of two commits that bring an application on at once it refuses one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa

from midstream.model.errors import SinkError
from midstream.model.extras import from_extra
from midstream.model.time_line import Stamp
from midstream.sinks.contract import Sink, StagedStep, anything, differing, other_columns
from midstream.sinks.lake_table import GoingBack, TableVersion, append_once, failing, going_back, lake_rows, lake_schema

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, Schema

APPLICATION, JOB, EPOCH, STEP = "midstream.application", "midstream.job", "midstream.epoch", "midstream.step"
"""Under these names a commit says in the table's history whose it is, and of which step."""

COMMITS_AT_ONCE = 16
"""How many commits are read at first to find the newest of a query; the next time, so many times as many."""

MAINTENANCE = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES")
"""Commits of these operations leave the rows what they are."""


@dataclass(frozen=True)
class DeltaSink(Sink):
    """Rows appended to a Delta table. If the table does not exist, the sink creates it.

    `path` is a folder or a URL such as `s3://bucket/pairs`. The environment gives the
    settings of the store (keys, region, endpoint), under their usual names. A job that goes back to a step restores the
    table's version of this step, if no other writer has written since.

    >>> DeltaSink("s3://bucket/pairs").to_json()
    {'type': 'delta', 'path': 's3://bucket/pairs'}
    """

    path: str

    name: ClassVar[str] = "delta"

    def __post_init__(self) -> None:
        with from_extra("delta", "sink", SinkError):
            import deltalake  # noqa: F401
        text = os.fspath(self.path) if isinstance(self.path, str | os.PathLike) else ""
        if not text or "\0" in text:
            raise SinkError(f"{self.path!r} is not a path", place="sink", remedy="name a folder, or a URL of a store")
        path = text.removeprefix("file://").removeprefix("file:")
        if "://" not in path:
            path = os.path.abspath(path)
        elif _has_credentials(path):
            raise SinkError(
                "a sink must not contain credentials: the checkpoint would keep the credentials",
                place="sink",
                remedy="leave credentials out of the path, and set the environment variables of the store",
            )
        object.__setattr__(self, "path", path)

    def open(self) -> None:
        """Check that the store answers."""
        self._table()

    def check_columns(self, columns: pa.Schema) -> None:
        """Raise `SinkError` if the table exists and its columns have other names or types."""
        if (table := self._table()) is not None:
            self._check_columns(table, lake_schema(columns))

    def write(self, staged: StagedStep) -> None:
        """Append the rows, unless the table already has the step."""
        from deltalake.exceptions import CommitFailedError

        rows = lake_rows(staged.table())
        with self._failing():
            append_once(lambda: self._append(rows, staged), CommitFailedError)

    def _append(self, rows: pa.Table, staged: StagedStep) -> None:
        from deltalake import DeltaTable, Schema, write_deltalake

        table = self._table()
        if table is None:
            DeltaTable.create(self.path, Schema.from_arrow(rows.schema), mode="ignore")
            table = DeltaTable(self.path)
        while (newest := self._newest(table, staged.name)) is not None and staged.line.gave_up(newest):
            self.forget_after(staged.name, newest.step - 1)
            table = DeltaTable(self.path)
        if staged.follows(newest, self._place):
            self._check_columns(table, rows.schema)
            rows = rows.select([field.name for field in table.schema().fields])
            write_deltalake(table, rows, mode="append", commit_properties=_noted(staged.name, staged.stamp))

    def newest(self, name: str) -> Stamp | None:
        """Read the newest step from the newest commit of the query.

        If the log no longer has this commit, the stamp has only the step.
        """
        table = self._table()
        return None if table is None else self._newest(table, name)

    def check_forget(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Raise `SinkError` if another writer wrote after `step`, or if the log lacks the version of `step`."""
        if (table := self._table()) is not None:
            self._back(table, name, step, given_up)

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Undo all steps after `step`: restore the version that the first of them replaced.

        Raises `SinkError` if another writer wrote after `step`, or if the table no longer keeps that version.
        """
        table = self._table()
        back = None if table is None else self._back(table, name, step, given_up)
        if table is not None and back is not None:
            with self._failing():
                table.restore(back.first.id - 1, commit_properties=_noted(name, back.stamp))

    def _back(self, table: DeltaTable, name: str, step: int, given_up: Callable[[Stamp], bool]) -> GoingBack | None:
        # None where the table has no later step that was given up.
        newest = self._newest(table, name)
        if newest is None or newest.step <= step or not given_up(newest):
            return None
        with self._failing():
            history = table.history()
        lost = "its log does not reach back so far" if history[-1]["version"] > 0 else None
        return going_back((_version(commit, name) for commit in history), step, self._place, lost=lost)

    def _newest(self, table: DeltaTable, name: str) -> Stamp | None:
        # The job is "" where the table's history does not say whose step it is.
        with self._failing():
            step = table.transaction_version(_application(name))
            return None if step is None or step < 0 else next(_stamps(table, name), Stamp("", "", step))

    def _check_columns(self, table: DeltaTable, schema: pa.Schema) -> None:
        # Delta would take anything it can cast, and round what does not fit.
        from deltalake import Schema

        if found := differing(_types(table.schema()), _types(Schema.from_arrow(schema))):
            raise other_columns(found, self._place)

    def _table(self) -> DeltaTable | None:
        from deltalake import DeltaTable

        with self._failing():
            there = DeltaTable.is_deltatable(self.path)
            return DeltaTable(self.path) if there else None

    @property
    def _place(self) -> str:
        return f"Delta table {self.path}"

    def _failing(self) -> AbstractContextManager[None]:
        remedy = "see that the store can be reached and written, then start again"
        return failing("Delta", self._place, remedy, lambda text: text.strip().partition("\n")[0])


def _has_credentials(url: str) -> bool:
    # A URL of Azure has its container where others have a user.
    parts = urlsplit(url)
    user = parts.username if parts.scheme not in ("abfs", "abfss") else None
    return any(part is not None and part != "" for part in (user, parts.password, parts.query))


def _types(schema: Schema) -> dict[str, str]:
    # As the library writes them; simple types by their name alone.
    return {field.name: re.sub(r'PrimitiveType\("([^"]*)"\)', r"\1", str(field.type)) for field in schema.fields}


def _application(name: str) -> str:
    return f"midstream/{name}"


def _noted(name: str, stamp: Stamp) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        app_transactions=[Transaction(_application(name), stamp.step)],
        custom_metadata={
            APPLICATION: _application(name),
            JOB: stamp.job,
            EPOCH: stamp.epoch,
            STEP: str(stamp.step),
        },
    )


def _version(commit: dict[str, Any], name: str) -> TableVersion:
    own = commit.get(APPLICATION) == _application(name)
    stamp = Stamp(commit.get(JOB, ""), commit.get(EPOCH, ""), int(commit[STEP])) if own else None
    return TableVersion(commit["version"], stamp, commit["operation"] in MAINTENANCE)


def _stamps(table: DeltaTable, name: str) -> Iterator[Stamp]:
    # The newest first; only the commits that are asked for are read.
    read, limit = 0, COMMITS_AT_ONCE
    while len(commits := table.history(limit)) > read:
        yield from (stamp for commit in commits[read:] if (stamp := _version(commit, name).stamp) is not None)
        read, limit = len(commits), limit * COMMITS_AT_ONCE
