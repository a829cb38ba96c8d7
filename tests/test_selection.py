"""What `make test` runs: the table of what it leaves to `make verify`, the fifths of random suites, the budget."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drawing import FIFTHS, SOAK, chosen_fifth, fifths, seeds
from tests.selection import IN_FIFTHS, VERIFY, only_in_verify

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", VERIFY)
def test_the_table_names_what_is_there(path: str) -> None:
    assert (ROOT / path.partition("::")[0]).exists()
    for kept in VERIFY[path] or ([""] if path.partition("::")[2] else []):
        file, _, name = (path + kept).partition("::")
        assert f"def {name.partition('[')[0]}" in (ROOT / file).read_text(), f"{path}{kept} names nothing"


@pytest.mark.parametrize("name", IN_FIFTHS)
def test_combinations_are_dealt_to_fifths(name: str) -> None:
    file, _, function = name.partition("::")
    assert f"def {function}(" in (ROOT / file).read_text(), f"{name} names nothing"
    left = [only_in_verify(f"{name}[{case}]") for case in range(1000)]
    assert left.count(False) == 1000 if SOAK else 120 < left.count(False) < 280


def test_a_first_look_stays() -> None:
    assert only_in_verify("tests/spark/test_crashes.py::test_a_worker_is_killed")
    assert not only_in_verify("tests/spark/test_crashes.py::test_the_driver_is_killed_at_three_points")
    assert not only_in_verify("tests/unit/model/test_ids.py::test_anything")


def test_a_run_beyond_the_budget_fails() -> None:
    """Two processes, whose seconds count together; within the budget every run of `make test` is."""
    beyond = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "tests/unit/model/test_ids.py"],
        cwd=ROOT,
        env={**os.environ, "MIDSTREAM_TEST_SECONDS": "0.0001"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert beyond.returncode == pytest.ExitCode.TESTS_FAILED
    assert " passed" in beyond.stdout and "more than a fifth above the budget" in beyond.stdout


def test_a_random_suite_has_the_chosen_fifth_and_verify_the_others(fifth: int) -> None:
    assert fifth in FIFTHS
    for found in (fifths(), seeds(5)):
        left = [param.values[0] for param in found if param.marks]
        assert SOAK or left == [n for n in FIFTHS if n != chosen_fifth()]
