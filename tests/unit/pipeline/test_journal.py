"""What is told through Python's `logging`, at which level, with which fields; and nothing where nobody asked."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from tests.unit.building import DDL, engine, table

SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, int]]:
    """Level, kind and step of each record."""
    return [(one.levelname, one.event, one.step) for one in caplog.records if one.name == "midstream"]  # type: ignore[attr-defined]


def test_steps_changes_and_lost_rows_have_their_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "midstream")
    made = engine("AB")
    made.add_query("q", SQL, plan="(A B)")
    made.push({"A": table([9], k=[1])})
    made.migrate("q", "(B A)")
    made.push({"A": table([1, None], k=[1, 1])})
    found = told(caplog)
    for wanted in (
        ("INFO", "command", -1),
        ("INFO", "query_added", 0),
        ("DEBUG", "step_done", 0),
        ("INFO", "migration_begun", 1),
        ("WARNING", "rows_late", 1),
        ("WARNING", "rows_rejected", 1),
        ("DEBUG", "step_done", 1),
    ):
        assert found.count(wanted) == 1, wanted
    late = next(one for one in caplog.records if getattr(one, "event", "") == "rows_late")
    fields: Any = late.fields  # type: ignore[attr-defined]
    assert (fields["stream"], fields["rows"]) == ("A", 1) and "stream A, rows 1" in late.getMessage()
    done: Any = next(one for one in caplog.records if getattr(one, "event", "") == "step_done")
    assert done.fields["rows"] == {"A": 1} and done.fields["phases"]["fold"] > 0


def test_a_failure_is_an_error_with_its_remedy(caplog: pytest.LogCaptureFixture) -> None:
    made = engine("A")
    with pytest.raises(ms.MidstreamError):
        made.push({"X": table([1])})
    ((level, kind, step),) = told(caplog)
    assert (level, kind, step) == ("ERROR", "step_failed", 0)
    record: Any = caplog.records[0]
    assert record.fields["error"] == "InputError" and record.fields["remedy"] and record.exc_info


def test_a_durable_job_is_named_and_commands_of_its_log_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "midstream")
    with ms.Engine(checkpoint=tmp_path / "ckpt") as made:
        made.create_stream("A", DDL, timestamp="ts")
        made.add_query("q", "SELECT A.k FROM A")
        made.push({"A": table([1], k=[1])})
        job = made.manifest.job
    assert job and {one.job for one in caplog.records if one.event == "query_added"} == {job}  # type: ignore[attr-defined]


def test_the_library_writes_nothing_by_itself_but_one_warning() -> None:
    program = (
        "import logging, midstream as ms\n"
        "made = ms.Engine()\n"
        "made.create_stream('A', 'ts TIMESTAMP', timestamp='ts')\n"
        "made.push({'A': [{'ts': None}]})\n"
        "assert logging.getLogger().handlers == [] and logging.getLogger('midstream').level == 0\n"
        "assert [type(h).__name__ for h in logging.getLogger('midstream').handlers] == ['NullHandler']\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert "UserWarning: 1 row of stream A could not be read" in done.stderr
