"""What `make test` runs: the table of what it leaves to `make verify`, the fifths of random suites, the budget."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drawing import FIFTHS, chosen_fifth
from tests.selection import VERIFY, only_in_verify

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", VERIFY)
def test_the_table_names_what_is_there(path: str) -> None:
    assert (ROOT / path.partition("::")[0]).exists()
    for kept in VERIFY[path] or ([""] if path.partition("::")[2] else []):
        file, _, name = (path + kept).partition("::")
        assert f"def {name.partition('[')[0]}" in (ROOT / file).read_text(), f"{path}{kept} names nothing"


def test_a_first_look_stays() -> None:
    assert only_in_verify("tests/spark/test_crashes.py::test_a_worker_is_killed")
    assert not only_in_verify("tests/spark/test_crashes.py::test_the_driver_is_killed_at_three_points")
    assert not only_in_verify("tests/unit/model/test_ids.py::test_anything")


def pytest_of(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a few quick tests."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_beyond_the_budget_fails() -> None:
    beyond = pytest_of("-n", "2", "tests/unit/model/test_ids.py", MIDSTREAM_TEST_SECONDS="0.0001")
    assert beyond.returncode == pytest.ExitCode.TESTS_FAILED
    assert " passed" in beyond.stdout and "more than a fifth above the budget" in beyond.stdout
    within = pytest_of("tests/unit/model/test_ids.py", MIDSTREAM_TEST_SECONDS="1000")
    assert within.returncode == pytest.ExitCode.OK and "of a budget of 1000" in within.stdout


def test_a_random_suite_has_the_chosen_fifth_and_verify_the_others() -> None:
    suite = "tests/property/test_quantiles.py"
    chosen = str(chosen_fifth())
    found = pytest_of("--collect-only", suite, MIDSTREAM_FIFTH=chosen).stdout
    assert [n for n in FIFTHS if f"[fifth{n}]" in found] == [chosen_fifth()]
    found = pytest_of("--collect-only", "-m", "verify", suite, MIDSTREAM_FIFTH=chosen).stdout
    assert [n for n in FIFTHS if f"[fifth{n}]" in found] == [n for n in FIFTHS if n != chosen_fifth()]
