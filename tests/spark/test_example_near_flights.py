"""The example of a distance join over nodes, small: all nodes work, and the answers are those of DuckDB."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.spark.forked_drivers import ForkedDrivers

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "near_flights.py"


@pytest.mark.timeout(300)
def test_flights_to_places_near_each_other_are_found_by_several_nodes(tmp_path: Path, drivers: ForkedDrivers) -> None:
    ended = drivers.run(str(EXAMPLE), "--folder", tmp_path / "near", "--weeks", "2", "--minutes", "20", "--nodes", "3")
    assert ended.returncode == 0, ended.stderr
    found = re.search(r"([\d,]+) answers, all as DuckDB has them", ended.stdout)
    assert found is not None and int(found[1].replace(",", "")) > 100
    work = re.findall(r"node \d: [\d,]+ rows?, ([\d,]+) comparisons, ([\d,]+) visits", ended.stdout)
    assert len(work) == 3 and all(int(count.replace(",", "")) > 0 for node in work for count in node)
