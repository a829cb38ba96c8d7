"""Streams that the tests of the language share."""

from __future__ import annotations

import pyarrow as pa

from midstream.logical.query import Query
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query

COLUMNS = pa.schema(
    [
        ("k", pa.int64()),
        ("i", pa.int32()),
        ("ts", pa.timestamp("us")),
        ("v", pa.float64()),
        ("f", pa.float32()),
        ("m", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("o", pa.bool_()),
        ("nano", pa.timestamp("ns")),
        ("code", pa.dictionary(pa.int8(), pa.string())),
        ("nested", pa.struct([("x", pa.int64())])),
        ("raw", pa.binary()),
    ]
)
STREAMS = {name: StreamSchema(name, COLUMNS, "ts") for name in ("A", "B", "C", "D")}
STREAMS["Odd Name"] = StreamSchema("Odd Name", pa.schema([("K", pa.int64()), ("ts", pa.timestamp("us"))]), "ts")


def parsed(text: str) -> Query:
    """The query of a text over the streams."""
    return parse_query(text, STREAMS)
