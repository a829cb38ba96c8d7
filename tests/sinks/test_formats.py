"""What files of results hold: every digit of times, the right instant, and no column that a format has no type for."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import midstream as ms
from midstream.sinks import formats
from midstream.sinks.formats import check_types, written

NANO, ZONED = pa.timestamp("ns"), pa.timestamp("ns", "Europe/Berlin")
TIMES: list[tuple[pa.DataType, Any, Any]] = [
    (NANO, 123_456_789, "1970-01-01T00:00:00.123456789"),
    (NANO, -1, "1969-12-31T23:59:59.999999999"),
    (ZONED, 123_456_789, "1970-01-01T00:00:00.123456789Z"),
    (pa.timestamp("us", "Europe/Berlin"), 1, "1970-01-01T00:00:00.000001Z"),
    (pa.timestamp("s"), 1, "1970-01-01T00:00:01.000000"),
    (pa.time64("ns"), 1, "00:00:00.000000001"),
    (pa.time64("us"), 1, "00:00:00.000001"),
    (pa.duration("ns"), 1, "0:00:00.000000001"),
    (pa.duration("us"), 1, "0:00:00.000001"),
    (pa.list_(NANO), [1, None], ["1970-01-01T00:00:00.000000001", None]),
    (pa.list_(pa.timestamp("ns", "UTC")), [1], ["1970-01-01T00:00:00.000000001+00:00"]),
    (pa.large_list(pa.list_(pa.time64("ns"))), [[1]], [["00:00:00.000000001"]]),
    (pa.list_(NANO, 1), [1], ["1970-01-01T00:00:00.000000001"]),
    (pa.struct({"t": pa.time64("ns"), "n": pa.int64()}), {"t": 1, "n": 2}, {"t": "00:00:00.000000001", "n": 2}),
    (pa.map_(pa.string(), NANO), [("a", 1)], [["a", "1970-01-01T00:00:00.000000001"]]),
]


@pytest.mark.parametrize(("kind", "value", "text"), TIMES, ids=[f"{kind}-{value}" for kind, value, _ in TIMES])
def test_json_has_every_digit_of_a_time(kind: pa.DataType, value: Any, text: Any) -> None:
    rows = pa.table({"n": [0, 1, 2], "v": pa.array([None, value, None], kind)})
    lines = written(rows.slice(1), "json").to_pybytes().decode().splitlines()
    assert [json.loads(line) for line in lines] == [{"n": 1, "v": text}, {"n": 2}]


def test_times_with_a_zone_are_in_utc_wherever_they_are() -> None:
    berlin = pa.timestamp("us", "Europe/Berlin")
    rows = pa.table({"v": pa.array([0], berlin), "l": pa.array([[0]], pa.list_(berlin))})
    assert json.loads(written(rows, "json").to_pybytes()) == {
        "v": "1970-01-01T00:00:00.000000Z", "l": ["1970-01-01T00:00:00+00:00"],
    }  # fmt: skip


def test_duckdb_reads_the_times_of_json(tmp_path: Path) -> None:
    moments = [-(2**62), -1, 0, 123_456_789, 2**62]
    rows = pa.table({"v": pa.array(moments, NANO)})
    (tmp_path / "rows.json").write_bytes(written(rows, "json").to_pybytes())
    asked = f"SELECT epoch_ns(v::TIMESTAMP_NS) FROM read_json('{tmp_path}/rows.json', columns = {{v: 'VARCHAR'}})"
    assert [value for (value,) in duckdb.connect().execute(asked).fetchall()] == moments


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("parquet", pa.month_day_nano_interval()),
        ("csv", pa.month_day_nano_interval()),
        ("parquet", pa.run_end_encoded(pa.int32(), pa.int64())),
        ("parquet", pa.list_(pa.month_day_nano_interval())),
    ],
    ids=str,
)
def test_a_type_that_a_format_has_not_is_told_with_its_column(format: str, kind: pa.DataType) -> None:
    columns = pa.schema([("k", pa.int64()), ("span", kind)])
    with pytest.raises(ms.SinkError, match="span \\(") as raised:
        check_types(columns, format, "query q")
    assert raised.value.place == "query q" and "json" in raised.value.remedy
    check_types(columns, "json", "query q")


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_query_is_refused_whose_results_its_format_cannot_hold(tmp_path: Path, format: str) -> None:
    columns = pa.schema([("k", pa.int64()), ("span", pa.month_day_nano_interval()), ("ts", pa.timestamp("us"))])
    with ms.Engine(checkpoint=str(tmp_path / "c")) as engine:
        engine.create_stream("A", columns, timestamp="ts")
        engine.add_query("fits", "SELECT k FROM A", sink=ms.sinks.files(str(tmp_path / "fits"), format=format))
        with pytest.raises(ms.SinkError, match="span \\(month_day_nano_interval"):
            engine.add_query("q", "SELECT k, span FROM A", sink=ms.sinks.files(str(tmp_path / "q"), format=format))
        spans = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
        rows = pa.table({"k": [1], "span": spans, "ts": pa.array([0], pa.timestamp("us"))})
        assert engine.push({"A": rows})["fits"].num_rows == 1


DRAWN = {
    "i": st.integers(-(2**63), 2**63 - 1),
    "f": st.floats(),
    "s": st.text(),
    "b": st.booleans(),
    "d": st.decimals(allow_nan=False, allow_infinity=False, places=7, min_value=-(10**20), max_value=10**20),
    "t": st.datetimes(datetime(1, 1, 1)),
    "y": st.binary(),
    "l": st.lists(st.floats() | st.none(), max_size=2),
}
KINDS = pa.schema(
    {"i": pa.int64(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(), "d": pa.decimal128(38, 7)}
    | {"t": pa.timestamp("us", "UTC"), "y": pa.binary(), "l": pa.list_(pa.float64())}
)


@given(st.lists(st.fixed_dictionaries({name: st.none() | drawn for name, drawn in DRAWN.items()})), st.data())
def test_json_put_together_by_columns_is_that_of_each_row(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    names = data.draw(st.permutations(sorted(DRAWN)))[: data.draw(st.integers(1, len(DRAWN)))]
    table = pa.Table.from_pylist(rows, KINDS).select(names)
    table = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    values = zip(*(formats._values(column) for column in table.columns), strict=True)
    found = [{name: one for name, one in zip(names, row, strict=True) if one is not None} for row in values]
    expected = [formats._dumped(one).encode() for one in found]
    assert formats.json_objects(table) == expected
    assert written(table, "json").to_pybytes() == b"".join(line + b"\n" for line in expected)


def test_json_of_texts_that_are_none() -> None:
    damaged = pa.array([b"a", b"\xff"]).view(pa.string())
    first, second = formats.json_objects(pa.table({"s": damaged}))
    assert first == b'{"s": "a"}'
    assert json.loads(second)["s"]
