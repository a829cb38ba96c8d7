"""Columns of files whose names differ from the declared ones by case: they are those, as they are for Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.embedded.folder_source import FolderSource
from midstream.model.errors import InputError
from midstream.sql.job_specs import SourceSpec
from tests.embedded.test_sources import found, job, rows

WRITE = {"parquet": pq.write_table, "orc": pyarrow.orc.write_table}


@pytest.mark.parametrize("format", sorted(WRITE))
def test_they_are_read(format: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    WRITE[format](rows(1, 2).rename_columns(["K", "Ts", "V"]), tmp_path / "in" / "1")
    schema = 'schema = "k BIGINT, ts TIMESTAMP, v DOUBLE"'
    with job(tmp_path / "c", tmp_path / "in", tmp_path / "out", format, schema) as running:
        assert running.step()
    assert found(tmp_path / "out") == [(1, 0.5), (2, 1.0)]


@pytest.mark.parametrize("format", sorted(WRITE))
@pytest.mark.parametrize(
    ("names", "declared"), [(["kA", "ts", "Ka"], "ka BIGINT, ts TIMESTAMP"), (["k", "ts", "K"], None)]
)
def test_of_two_that_differ_only_by_case_nobody_knows_which_is_meant(
    format: str, names: list[str], declared: str | None, tmp_path: Path
) -> None:
    WRITE[format](rows(1, 2).rename_columns(names), tmp_path / "1")
    with pytest.raises(InputError, match=f"'{names[0]}' and '{names[2]}' differ only by case") as refused:
        source = FolderSource.of("A", SourceSpec(format, str(tmp_path), declared, "ts"), None)
        source.read(source.waiting(()))
    assert refused.value.place == str(tmp_path / "1") and refused.value.remedy


@pytest.mark.parametrize("format", sorted(WRITE))
def test_one_that_is_called_just_so_is_the_one(format: str, tmp_path: Path) -> None:
    given = pa.array([{"a": 1, "A": 2}, {"a": 3, "A": 4}], pa.struct({"a": pa.int64(), "A": pa.int64()}))
    table = pa.table({"K": [8, 9], "k": [1, 2], "ts": rows(1, 2)["ts"], "s": given})
    WRITE[format](table, tmp_path / "1")
    source = FolderSource.of(
        "A", SourceSpec(format, str(tmp_path), "k BIGINT, ts TIMESTAMP, s STRUCT<a: INT>", "ts"), None
    )
    with ms.Engine() as engine:
        engine.create_stream("A", source.columns, timestamp="ts")
        engine.add_query("q", "SELECT k, s FROM A")
        found = engine.push({"A": source.read(source.waiting(()))})["q"].to_pylist()
    assert found == [{"k": 1, "s": {"a": 1}}, {"k": 2, "s": {"a": 3}}]


def test_fields_of_dictionaries_and_of_maps_without_nulls(tmp_path: Path) -> None:
    words, whole = pa.array(["x", "y"]).dictionary_encode(), pa.field("value", pa.string(), nullable=False)
    kind = pa.map_(pa.string(), pa.field("value", words.type, nullable=False))
    maps = pa.MapArray.from_arrays([0, 1, 2], pa.array(["k", "l"]), words).cast(kind)
    table = pa.table({"s": pa.StructArray.from_arrays([words], ["A"]), "m": maps, "ts": rows(1, 2)["ts"]})
    pq.write_table(table, tmp_path / "1")
    columns = pa.schema(
        [("s", pa.struct({"a": pa.string()})), ("m", pa.map_(pa.string(), whole)), ("ts", table["ts"].type)]
    )
    source = FolderSource.of("A", SourceSpec("parquet", str(tmp_path), None, "ts"), columns)
    found = source.read(source.waiting(())).to_pylist()
    assert [(row["s"], row["m"]) for row in found] == [({"a": "x"}, [("k", "x")]), ({"a": "y"}, [("l", "y")])]


def test_a_stream_that_has_both_goes_on(tmp_path: Path) -> None:
    table = rows(1, 2).rename_columns(["k", "ts", "K"])
    pq.write_table(table, tmp_path / "1")
    source = FolderSource.of("A", SourceSpec("parquet", str(tmp_path), None, "ts"), table.schema)
    assert source.read(source.waiting(())).select(table.column_names).equals(table)


@pytest.mark.parametrize("format", sorted(WRITE))
def test_so_are_fields_of_structs(format: str, tmp_path: Path) -> None:
    values = [{"A": 1, "B": [{"C": "x", "d": 2}]}, None, {"A": None, "B": None}, {"A": 4, "B": []}]
    given = pa.array(
        values, pa.struct([("A", pa.int64()), ("B", pa.list_(pa.struct({"C": pa.string(), "d": pa.int64()})))])
    )
    maps = pa.array([[("k", {"E": at})] for at in range(4)], pa.map_(pa.string(), pa.struct({"E": pa.int64()})))
    WRITE[format](rows(1, 2, 3, 4).append_column("S", given).append_column("m", maps), tmp_path / "1")
    schema = "ts TIMESTAMP, s STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING>>>, m MAP<STRING, STRUCT<e: BIGINT>>"
    source = FolderSource.of("A", SourceSpec(format, str(tmp_path), schema, "ts"), None)
    with ms.Engine() as engine:
        engine.create_stream("A", source.columns, timestamp="ts")
        engine.add_query("q", "SELECT s, m FROM A")
        found = engine.push({"A": source.read(source.waiting(()))})["q"].to_pylist()
    assert [row["s"] for row in found] == [
        {"a": 1, "b": [{"c": "x"}]},
        None,
        {"a": None, "b": None},
        {"a": 4, "b": []},
    ]
    assert [row["m"] for row in found] == [[("k", {"e": at})] for at in range(4)]
