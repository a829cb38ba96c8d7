"""An Iceberg table as a sink: the rows of a step and the number of the step in one commit to its catalog.

A commit of Iceberg is a list of changes with requirements that the catalog checks in the same breath (Iceberg REST
specification, `CommitTableRequest`). The step is noted as a property of the table, and the append requires that the
snapshot is the one the note was read with: of two drivers that append the same step one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from midstream.model.errors import SinkError
from midstream.model.extras import from_extra
from midstream.model.time_line import Stamp
from midstream.sinks.contract import Sink, StagedStep, anything, differing, other_columns
from midstream.sinks.lake_table import GoingBack, TableVersion, append_once, failing, going_back, lake_rows, lake_schema

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import NestedField

QUERY, JOB, EPOCH, STEP = "midstream.query", "midstream.job", "midstream.epoch", "midstream.step"
"""Under these names a snapshot says whose it is, and of which step."""


@dataclass(frozen=True)
class IcebergSink(Sink):
    """Rows appended to a table of a catalog. If the table does not exist, the sink creates it.

    `catalog` names a catalog, whose address and credentials are in the file `~/.pyiceberg.yaml` or in the environment
    (`PYICEBERG_CATALOG__DEFAULT__URI`). `table` is `namespace.table` in this catalog. A job that goes back to a step
    restores the table's snapshot of this step, if no other writer has written since.

    >>> IcebergSink("sales.pairs").to_json()
    {'type': 'iceberg', 'table': 'sales.pairs', 'catalog': 'default'}
    """

    table: str
    catalog: str = "default"

    name: ClassVar[str] = "iceberg"

    def __post_init__(self) -> None:
        with from_extra("iceberg", "sink", SinkError):
            import pyiceberg  # noqa: F401
        if not isinstance(self.table, str) or "." not in self.table or not all(self.table.split(".")):
            raise SinkError(
                f"{self.table!r} is not the name of a table", place="sink", remedy='write "namespace.table"'
            )

    def open(self) -> None:
        """Check that the catalog answers, and create the namespace if it does not exist."""
        with self._failing():
            self._catalog().create_namespace_if_not_exists(self.table.rpartition(".")[0])

    def check_columns(self, columns: pa.Schema) -> None:
        """Raise `SinkError` if the columns of an existing table do not fit the results by name or type."""
        with self._failing():
            if (table := self._loaded()) is not None:
                self._check_columns(table, lake_schema(columns))

    def write(self, staged: StagedStep) -> None:
        """Append the rows, unless the table already has the step."""
        from pyiceberg.exceptions import CommitFailedException

        rows = lake_rows(staged.table())
        with self._failing():
            append_once(lambda: self._append(rows, staged), CommitFailedException)

    def _append(self, rows: pa.Table, staged: StagedStep) -> None:
        table = self._catalog().create_table_if_not_exists(self.table, rows.schema)
        while (newest := self._newest(table, staged.name)) is not None and staged.line.gave_up(newest):
            self.forget_after(staged.name, newest.step - 1)
            table = self._catalog().load_table(self.table)
        if staged.follows(newest, self._place):
            self._check_columns(table, rows.schema)
            with _once(table).transaction() as transaction:
                transaction.append(rows, _summary(staged.name, staged.stamp))
                transaction.set_properties({_note(staged.name): json.dumps(vars(staged.stamp))})

    def newest(self, name: str) -> Stamp | None:
        """Read the newest step from a property of the table."""
        with self._failing():
            table = self._loaded()
            return None if table is None else self._newest(table, name)

    def check_forget(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Raise `SinkError` if another writer wrote after `step`, or if the snapshot of `step` has expired."""
        with self._failing():
            if (table := self._loaded()) is not None:
                self._back(table, name, step, given_up)

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Undo all steps after `step`.

        The table gets back the snapshot from before the first of these steps. Raises `SinkError` if another writer
        wrote after `step`, or if the snapshot to restore has expired.
        """
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.table.update.snapshot import ManageSnapshots

        with self._failing():
            table = self._loaded()
            back = None if table is None else self._back(table, name, step, given_up)
            if table is None or back is None:
                return
            first = table.snapshot_by_id(back.first.id)
            before = None if first is None else first.parent_snapshot_id
            with _once(table).transaction() as transaction:
                if before is None:  # A table cannot be without a snapshot again.
                    transaction.delete(AlwaysTrue(), _summary(name, back.stamp))
                else:
                    ManageSnapshots(transaction).set_current_snapshot(before).commit()
                transaction.set_properties({_note(name): json.dumps(vars(back.stamp))})

    def _loaded(self) -> Table | None:
        catalog = self._catalog()
        return catalog.load_table(self.table) if catalog.table_exists(self.table) else None

    def _back(self, table: Table, name: str, step: int, given_up: Callable[[Stamp], bool]) -> GoingBack | None:
        # None where the table has no later step that was given up.
        newest = self._newest(table, name)
        if newest is None or newest.step <= step or not given_up(newest):
            return None
        snapshots = list(_ancestors(table))
        lost = "its snapshots of then have expired" if snapshots[-1].parent_snapshot_id is not None else None
        return going_back((_version(one, name) for one in snapshots), step, self._place, lost=lost)

    @staticmethod
    def _newest(table: Table, name: str) -> Stamp | None:
        noted = table.properties.get(_note(name))
        stamp = None if noted is None else Stamp(**{"job": "", "epoch": "", **json.loads(noted)})
        return None if stamp is None or stamp.step < 0 else stamp

    def _check_columns(self, table: Table, schema: pa.Schema) -> None:
        # Types that do not fit are refused as rows are appended, too; but columns that are missing would be NULL.
        from pyiceberg.io.pyarrow import pyarrow_to_schema

        has = {field.name: field for field in table.schema().fields}
        if has.keys() != set(schema.names):
            raise other_columns(differing(dict.fromkeys(has, ""), dict.fromkeys(schema.names, "")), self._place)
        gives = pyarrow_to_schema(schema, name_mapping=table.schema().name_mapping).fields
        if found := [
            f"{field.name} is {_shown(has[field.name])} and should be {_shown(field)}"
            for field in gives
            if not _takes(has[field.name], field)
        ]:
            raise other_columns(found, self._place)

    def _catalog(self) -> Catalog:
        from pyiceberg.catalog import load_catalog

        return load_catalog(self.catalog)

    @property
    def _place(self) -> str:
        return f"Iceberg table {self.table} of catalog {self.catalog}"

    def _failing(self) -> AbstractContextManager[None]:
        remedy = (
            "see that the catalog is described and can be reached, and that the table has the columns of the results "
            "in their types; then start again"
        )
        return failing("Iceberg", self._place, remedy, lambda text: " ".join(text.split()))


def _takes(column: NestedField, results: NestedField) -> bool:
    # The column's own type, or one that is promoted to it without loss. What is within nested values is left to the
    # append.
    from pyiceberg.exceptions import ResolveError
    from pyiceberg.schema import promote

    if column.required and not results.required:
        return False
    has, gives = column.field_type, results.field_type
    if has == gives or (type(has) is type(gives) and not has.is_primitive):
        return True
    try:
        promote(gives, has)
    except ResolveError:
        return False
    return True


def _shown(field: NestedField) -> str:
    return f"{'required ' if field.required else ''}{field.field_type}"


def _summary(name: str, stamp: Stamp) -> dict[str, str]:
    return {QUERY: name, JOB: stamp.job, EPOCH: stamp.epoch, STEP: str(stamp.step)}


def _note(name: str) -> str:
    return f"midstream.newest-step.{name}"


def _once(table: Table) -> Table:
    # By default the library appends once more on top of the other commit, without seeing whether that was the same
    # step.
    table.metadata.properties["commit.retry.num-retries"] = "0"
    return table


def _ancestors(table: Table) -> Iterator[Snapshot]:
    # The newest first, as far as they are kept.
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)


def _version(snapshot: Snapshot, name: str) -> TableVersion:
    said: dict[str, Any] = {} if snapshot.summary is None else dict(snapshot.summary.additional_properties)
    same_rows = snapshot.summary is not None and snapshot.summary.operation.value == "replace"
    own = said.get(QUERY) == name
    stamp = Stamp(said.get(JOB, ""), said.get(EPOCH, ""), int(said[STEP])) if own else None
    return TableVersion(snapshot.snapshot_id, stamp, same_rows)
