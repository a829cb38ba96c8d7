"""Texts as times."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from midstream.model.schema import StreamSchema
from midstream.step.admission.reading import read_rows

NOON = datetime(2024, 2, 29, 12, 30, 15)

READ = {
    "2024-02-29T12:30:15": NOON,
    "2024-02-29 12:30:15": NOON,
    "2024-02-29T12:30:15Z": NOON,
    "2024-02-29t12:30:15z": NOON,
    "2024-02-29T12:30:15 Z": NOON,
    " 2024-02-29 12:30:15 ": NOON,
    "2024-02-29T13:30:15+01:00": NOON,
    "2024-02-29T13:30:15+0100": NOON,
    "2024-02-29T13:30:15 +01": NOON,
    "2024-02-29T10:00:15-02:30": NOON,
    "20240229T123015": NOON,
    "20240229T123015Z": NOON,
    "20240229T133015+0100": NOON,
    "2024-060T12:30:15Z": NOON,
    "2024-W09-4T13:30:15+01:00": NOON,
    "2024-02-29T12:30:15.123456789Z": NOON.replace(microsecond=123_456),
    "2024-02-29T12:30:15,5": NOON.replace(microsecond=500_000),
    "20240229T123015.25Z": NOON.replace(microsecond=250_000),
    "2024-02-29T12:30": NOON.replace(second=0),
    "20240229T1230Z": NOON.replace(second=0),
    "2024-02-29": datetime(2024, 2, 29),
    "20240229": datetime(2024, 2, 29),
    "2024W094": datetime(2024, 2, 29),
    "1969-12-31T23:59:59.999999999Z": datetime(1969, 12, 31, 23, 59, 59, 999_999),
}
REFUSED = (
    "",
    "soon",
    "2024-02-30",
    "2024-2-9",
    "2024-02-29T25:00",
    "2024-02-29T12:30:61Z",
    "2024-W54-1",
    "2024-367",
    "7",
)


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string()])
def test_every_form_alone_and_among_others(kind: pa.DataType) -> None:
    schema = StreamSchema("A", pa.schema([("ts", kind)]), "ts")

    def read(*texts: str) -> list[datetime | None]:
        times = read_rows(schema, pa.RecordBatch.from_pydict({"ts": pa.array(texts)})).times
        found: list[datetime | None] = times.cast(pa.timestamp("us")).to_pylist()
        return found

    assert {text: read(text) for text in READ} == {text: [time] for text, time in READ.items()}
    assert {text: read(text) for text in REFUSED} == {text: [None] for text in REFUSED}
    assert read(*READ, *REFUSED) == [*READ.values(), *[None] * len(REFUSED)]


@pytest.mark.parametrize(
    ("text", "same"),
    [("0001-001T00:00+01:00", "0001-01-01T00:00+01:00"), ("9999-W52-5T23:00-05:00", "9999-12-31T23:00-05:00")],
)
def test_an_offset_may_lead_beyond_the_years_of_python(text: str, same: str) -> None:
    schema = StreamSchema("A", pa.schema([("ts", pa.timestamp("us"))]), "ts")
    read = read_rows(schema, pa.RecordBatch.from_pydict({"ts": [text, same]})).times.to_pylist()
    assert read[0] is not None and read[0] == read[1]
