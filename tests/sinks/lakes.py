"""Tables of Delta and Iceberg for tests: how each is made, read, and changed by others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.utils.config import Config

from midstream.sinks import Sink
from midstream.sinks.delta import DeltaSink
from midstream.sinks.iceberg import IcebergSink


@dataclass(frozen=True)
class Lake:
    """A format of tables: the sink of a folder's table, its rows, and what others do to it."""

    make: Callable[[Path], Sink]
    table: Callable[[Path], pa.Table | None]
    append: Callable[[Path, pa.Table], Any]
    rearrange: Callable[[Path], Any]

    def rows(self, folder: Path) -> list[dict[str, Any]]:
        found = self.table(folder)
        return [] if found is None else found.to_pylist()

    def keys(self, folder: Path) -> list[int]:
        return sorted(row["k"] for row in self.rows(folder))


def delta_table(folder: Path) -> pa.Table | None:
    path = str(folder / "t")
    return DeltaTable(path).to_pyarrow_table() if DeltaTable.is_deltatable(path) else None


def name_in_catalog(folder: Path) -> str:
    return "ns.t" + sha256(str(folder).encode()).hexdigest()[:12]


def catalog() -> Catalog:
    return load_catalog("tests")


def iceberg_table(folder: Path) -> pa.Table | None:
    name = name_in_catalog(folder)
    return catalog().load_table(name).scan().to_arrow() if catalog().table_exists(name) else None


def rearrange_iceberg(folder: Path) -> None:
    """The library has no compaction; a property leaves the rows what they are as well."""
    table = catalog().load_table(name_in_catalog(folder))
    with table.transaction() as transaction:
        transaction.set_properties({"of": "others"})


LAKES = {
    "delta": Lake(
        lambda folder: DeltaSink(str(folder / "t")),
        delta_table,
        lambda folder, rows: write_deltalake(str(folder / "t"), rows, mode="append"),
        lambda folder: DeltaTable(str(folder / "t")).optimize.compact(),
    ),
    "iceberg": Lake(
        lambda folder: IcebergSink(name_in_catalog(folder), "tests"),
        iceberg_table,
        lambda folder, rows: catalog().load_table(name_in_catalog(folder)).append(rows),
        rearrange_iceberg,
    ),
}


def describe_catalog(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Describe a catalog in the environment, as an operator does."""
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__URI", f"sqlite:///{folder}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__WAREHOUSE", f"file://{folder}/warehouse")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # It is read when the library is imported.
