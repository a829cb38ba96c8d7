"""What the README and the examples show runs as shown."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from midstream.language.job_file import read_job_file

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
    assert "payments+refunds" in shown


def test_the_quickstart_shows_that_the_migration_pays(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "quickstart.py"))
    work = [int(m.replace(",", "")) for m in re.findall(r"([\d,]+) comparisons", capsys.readouterr().out)]
    assert len(work) == 8
    assert max(work[5:]) * 10 < work[4]


def test_the_job_file_can_be_read() -> None:
    job = read_job_file(ROOT / "examples" / "job.toml")
    assert set(job.streams) == {"A", "B"}
    assert set(job.queries) == {"pairs"}
