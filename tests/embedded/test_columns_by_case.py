"""Columns of files whose names differ from the declared ones by case: they are those, as they are for Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from midstream.engine.folder_source import FolderSource
from midstream.language.job_specs import SourceSpec
from midstream.model.errors import InputError
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
@pytest.mark.parametrize("declared", ["k BIGINT, ts TIMESTAMP", None])
def test_of_two_that_differ_only_by_case_nobody_knows_which_is_meant(
    format: str, declared: str | None, tmp_path: Path
) -> None:
    WRITE[format](rows(1, 2).rename_columns(["k", "ts", "K"]), tmp_path / "1")
    with pytest.raises(InputError, match="'k' and 'K' differ only by case") as refused:
        source = FolderSource.of("A", SourceSpec(format, str(tmp_path), declared, "ts"), None)
        source.read(source.waiting(()))
    assert refused.value.place == str(tmp_path / "1") and refused.value.remedy


def test_a_stream_that_has_both_goes_on(tmp_path: Path) -> None:
    table = rows(1, 2).rename_columns(["k", "ts", "K"])
    pq.write_table(table, tmp_path / "1")
    source = FolderSource.of("A", SourceSpec("parquet", str(tmp_path), None, "ts"), table.schema)
    assert source.read(source.waiting(())).equals(table)
