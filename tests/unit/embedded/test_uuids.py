"""A column declared UUID holds UUIDs, however they come, and nothing else."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import midstream as ms

ONE = uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
TEXT = str(ONE)
AT = pa.array([0], pa.timestamp("us"))
FORMS = {
    "text": pa.array([TEXT]),
    "capitals": pa.array([TEXT.upper()]),
    "braces": pa.array([f"{{{TEXT}}}"]),
    "digits": pa.array([ONE.hex]),
    "arrow": pa.array([ONE.bytes], pa.uuid()),
    "bytes": pa.array([ONE.bytes], pa.binary(16)),
    "dictionary": pa.array([TEXT]).dictionary_encode(),
}

LOUD = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"


def engine() -> ms.Engine:
    made = ms.Engine()
    for stream in "AB":
        made.create_stream(stream, "k UUID, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND")
    return made


@pytest.mark.parametrize("form", FORMS)
def test_every_form_joins_with_every_other(form: str) -> None:
    for other in FORMS.values():
        made = engine()
        pushed: dict[str, Any] = {"A": pa.table({"k": FORMS[form], "ts": AT}), "B": pa.table({"k": other, "ts": AT})}
        assert made.push(pushed)["q"].to_pylist() == [{"k": TEXT}]


def test_python_s_own() -> None:
    made = engine()
    rows = [{"k": ONE, "ts": AT[0].as_py()}]
    assert made.push({"A": rows, "B": rows})["q"].to_pylist() == [{"k": TEXT}]


def test_what_is_none_is_a_dead_letter() -> None:
    made = engine()
    made.push({"A": pa.table({"k": ["nope", None, TEXT[:-1]], "ts": pa.array([0] * 3, pa.timestamp("us"))})})
    assert made.dead_letters["A"]["_reason"].to_pylist() == [
        "column 'k': 'nope' is not a UUID",
        f"column 'k': '{TEXT[:-1]}' is not a UUID",
    ]
    assert made.manifest.progress["A"].rows == 1


def test_a_schema_of_arrow_and_a_checkpoint(tmp_path: Path) -> None:
    table = pa.table({"k": FORMS["arrow"], "ts": AT})
    pq.write_table(table, tmp_path / "1.parquet")
    for _ in range(2):
        with ms.Engine(checkpoint=tmp_path / "ckpt") as made:
            made.create_stream("A", table.schema, "ts")
            made.add_query("q", "SELECT k FROM A")
            assert made.push({"A": pq.read_table(tmp_path / "1.parquet")})["q"].to_pylist() == [{"k": TEXT}]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (f"A.k = '{LOUD}'", True),
        (f"A.k IN ('{LOUD}', '00000000-0000-0000-0000-000000000000')", True),
        (f"A.k <> '{LOUD}'", False),
        (f"A.k >= '{LOUD}'", True),
        (f"A.k = UUID '{LOUD}'", True),
        (f"A.k = CAST('{LOUD}' AS UUID)", True),
        ("A.k = CAST(A.n AS UUID)", True),
        ("A.k = TRY_CAST(A.n AS UUID)", True),
        (f"A.k BETWEEN '{LOUD}' AND '{LOUD}'", True),
        (f"CASE A.k WHEN '{LOUD}' THEN true ELSE false END", True),
    ],
)
def test_a_uuid_that_a_query_writes_may_be_of_any_case(condition: str, holds: bool) -> None:
    engine = ms.Engine()
    engine.create_stream("A", "k UUID, n VARCHAR, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", f"SELECT A.k FROM A WHERE {condition}")
    found = engine.push({"A": pa.table({"k": [LOUD.lower()], "n": [LOUD], "ts": pa.array([0], pa.timestamp("us"))})})
    assert found["q"].num_rows == holds


def test_a_text_that_is_no_uuid_is_refused() -> None:
    engine = ms.Engine()
    engine.create_stream("A", "k UUID, n VARCHAR, ts TIMESTAMP", timestamp="ts")
    for text in ("A.k = 'nope'", "A.k = CAST('nope' AS UUID)"):
        with pytest.raises(ms.MidstreamError, match=r"'nope' is not a UUID.*line 1, column"):
            engine.add_query("q", f"SELECT A.k FROM A WHERE {text}")
    engine.add_query("q", "SELECT CAST(A.n AS UUID) AS u FROM A")
    engine.push({"A": pa.table({"k": [None], "n": ["nope"], "ts": pa.array([0], pa.timestamp("us"))})})
    assert engine.dead_letters["q"].num_rows == 1
