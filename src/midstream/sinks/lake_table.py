"""What tables of Delta and of Iceberg have in common: the types they know, and versions to go back to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from midstream.model.errors import MidstreamError, SinkError, WriteError
from midstream.model.time_line import Stamp

ATTEMPTS = 10
"""How often an append is tried where others commit to the table at the same time."""

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),
}


def lake_rows(rows: pa.Table) -> pa.Table:
    """Cast the rows to types that both formats have, no value changed.

    >>> lake_rows(pa.table({"n": pa.array([2**64 - 1], pa.uint64())})).schema.field("n").type
    Decimal128Type(decimal128(20, 0))
    """
    kinds = lake_schema(rows.schema)
    return rows if kinds == rows.schema else rows.cast(kinds)


def lake_schema(columns: pa.Schema) -> pa.Schema:
    """Return the columns in types that both formats have."""
    return pa.schema([pa.field(field.name, _lake_type(field.type)) for field in columns])


def _lake_type(kind: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(kind):
        return _lake_type(kind.value_type)
    if pt.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return _WIDER.get(kind, kind)


@contextmanager
def failing(what: str, place: str, remedy: str, said: Callable[[str], str]) -> Iterator[None]:
    """Raise anything that a library raises in the block as a `WriteError`; `said` cuts out the part worth reading."""
    try:
        yield
    except MidstreamError:
        raise
    except Exception as error:  # The libraries have no common class for what they raise.
        text = said(str(error)) or type(error).__name__
        raise WriteError(f"{what}: {text}", place=place, remedy=remedy) from error


def append_once(append: Callable[[], None], refused: type[Exception]) -> None:
    """Append a step unless the table has it; try again where the commit is `refused`.

    Then somebody else came first, perhaps with this very step.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return append()
        except refused:
            continue
    append()


@dataclass(frozen=True)
class TableVersion:
    """A version of a table in its history; `stamp` is of the step of the query in question whose results it added, or
    which it went back to, and None where it is of somebody else. `same_rows`: it only arranged the table again.
    """

    id: int
    stamp: Stamp | None
    same_rows: bool = False


@dataclass(frozen=True)
class GoingBack:
    """What must be undone so that a table has nothing of later steps: all from the version `first` on, back to what
    it was before; and the version that the newest step which stays has made, None where no step stays.
    """

    first: TableVersion
    stays: TableVersion | None

    @property
    def stamp(self) -> Stamp:
        """Of the newest step that stays; that of no step, -1, where there is none."""
        return self.stays.stamp if self.stays is not None and self.stays.stamp is not None else Stamp("", "", -1)


def going_back(history: Iterable[TableVersion], step: int, place: str, *, lost: str | None) -> GoingBack:
    """Find what must be undone so that a table goes back to a step.

    Args:
        history: The table's versions, the newest first.
        step: The last step that stays.
        place: The table, for messages.
        lost: What became of the beginning of the history; None if it is whole.

    Raises where the step is in what was lost, or where somebody else changed the table since: their change would be
    undone with it.

    >>> own = {id: TableVersion(id, Stamp("job", "epoch", step)) for id, step in ((4, 7), (2, 6), (1, 5))}
    >>> back = going_back([own[4], TableVersion(3, None, same_rows=True), own[2], own[1]], 5, "table t", lost=None)
    >>> back.first.id, back.stays.id
    (2, 1)
    """
    first: TableVersion | None = None
    stays: TableVersion | None = None
    foreign: TableVersion | None = None
    for version in history:
        if version.stamp is None:
            foreign = foreign if version.same_rows else version
        elif version.stamp.step <= step:
            stays = version
            break
        elif foreign is not None:
            raise SinkError(
                f"the table cannot go back to step {step}: this would also undo version {foreign.id}, which another "
                f"query wrote after step {version.stamp.step}",
                place=place,
                remedy="delete the rows of later steps by hand, or restore the table and give each query its own table",
            )
        else:
            first = version
    if first is None or (stays is None and lost is not None):
        raise SinkError(
            f"the table cannot go back to step {step}: {lost or 'no later step is in its history'}",
            place=place,
            remedy="delete the rows of later steps by hand, or name another table",
        )
    return GoingBack(first, stays)
