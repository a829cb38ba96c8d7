"""Late rows and dead letters of an endless stream do not fill the memory."""

from __future__ import annotations

import pyarrow as pa

from midstream.admission import refused_rows


def test_the_newest_rejected_rows_are_kept() -> None:
    kept: dict[str, pa.Table] = {}
    for begin in range(0, 12, 3):
        kept = refused_rows.appended(kept, {"A": pa.table({"k": range(begin, begin + 3)})}, 5)
    kept = refused_rows.appended(kept, {"B": pa.table({"k": range(9)})}, 5)
    assert {name: table["k"].to_pylist() for name, table in kept.items()} == {
        "A": [7, 8, 9, 10, 11],
        "B": [4, 5, 6, 7, 8],
    }


def test_all_are_kept_where_no_number_is_given() -> None:
    kept = refused_rows.appended({"A": pa.table({"k": range(3)})}, {"A": pa.table({"k": range(200_000)})})
    assert kept["A"].num_rows == 200_003
