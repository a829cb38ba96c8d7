"""A function as a sink where there is no Spark: it is given Arrow tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from midstream.sinks import FunctionSink
from midstream.testing import SinkCase, check_sink


def rows_of_files(folder: Path) -> list[dict[str, Any]]:
    return [row for file in folder.glob("step=*/*.parquet") for row in pq.read_table(file).to_pylist()]


def writing_into(folder: Path) -> FunctionSink:
    def function(rows: pa.Table, step: int, query: str) -> None:
        target = folder / f"step={step}"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        pq.write_table(rows, target / "rows.parquet")

    return FunctionSink(function)


def test_a_function_of_arrow_tables_keeps_the_contract() -> None:
    check_sink(SinkCase(writing_into, rows_of_files, takes_back=False))


def test_sinks_load_without_spark() -> None:
    program = "import sys; sys.modules['pyspark'] = None; import midstream.pipeline.outputs, midstream.testing"
    subprocess.run([sys.executable, "-c", program], check=True)
