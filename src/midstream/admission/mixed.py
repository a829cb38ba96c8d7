"""Columns whose values were judged one by one as they were given: what was read, and why what was not could not be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa


class Mixed(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column that was given as values of several kinds and is declared as `kind`.

    Of each value there is what was read, its text, in which a dead letter shows it, and the reason if nothing was.

    >>> Mixed(pa.int64()) == Mixed(pa.int64()), Mixed(pa.int64()) == Mixed(pa.string())
    (True, False)
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        super().__init__(pa.struct([("read", kind), ("text", pa.string()), ("reason", pa.string())]), "midstream.mixed")

    def __arrow_ext_serialize__(self) -> bytes:
        """Return nothing: the type of what was read is that of the storage."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Mixed:
        """Make the type over its storage."""
        return cls(storage_type.field("read").type)


def mixed(read: pa.Array, texts: Sequence[str | None] | pa.Array, reasons: Mapping[int, str]) -> pa.ExtensionArray:
    """Make a column of values that were judged; `reasons` are those of what could not be read, by position.

    >>> column = mixed(pa.array([1, None]), ["1", "x"], {1: "no number"})
    >>> read_of(column).to_pylist(), texts_of(column).to_pylist(), reasons_of(column)
    ([1, None], ['1', 'x'], {1: 'no number'})
    """
    why = np.full(len(read), None, object)
    for row, reason in reasons.items():
        why[row] = reason
    parts = [read, pa.array(texts, pa.string()), pa.array(why, pa.string())]
    kind = Mixed(read.type)
    return pa.ExtensionArray.from_storage(kind, pa.StructArray.from_arrays(parts, fields=list(kind.storage_type)))


def read_of(column: pa.ExtensionArray) -> pa.Array:
    """Return the values as they were read, NULL where none was."""
    return column.storage.field("read")


def texts_of(column: pa.ExtensionArray) -> pa.Array:
    """Return the values as texts."""
    return column.storage.field("text")


def reasons_of(column: pa.ExtensionArray) -> dict[int, str]:
    """Return why values could not be read, by position."""
    reasons = column.storage.field("reason")
    at = np.flatnonzero(reasons.is_valid().to_numpy(zero_copy_only=False))
    return dict(zip(at.tolist(), reasons.drop_null().to_pylist(), strict=True))


def with_texts(table: pa.Table) -> pa.Table:
    """Replace such columns of a table by their texts."""
    for at, field in enumerate(table.schema):
        if isinstance(field.type, Mixed):
            texts = pa.chunked_array([texts_of(chunk) for chunk in table.column(at).chunks], pa.string())
            table = table.set_column(at, field.name, texts)
    return table
