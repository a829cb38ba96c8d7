"""The process of an engine is killed as nodes join its rings and leave them: the sinks are those of a quiet run."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from midstream.model.node_spread import NodeSpread
from midstream.pipeline.crash_points import POINTS
from tests.embedded.relocation_engine import CASE, main
from tests.embedded.test_kills import newest, run_and_kill
from tests.oracle.compare import assert_each_step_same
from tests.property.drive import Case

LAST = len(CASE.steps) - 1


def check(root: Path, case: Case) -> None:
    for name, answer in case.expected().items():
        assert answer.table.num_rows
        folders = [root / "answers" / name / f"step={step:08d}" for step in range(len(case.steps))]
        assert_each_step_same([pq.read_table(one) if one.is_dir() else None for one in folders], answer, name)


def spreads(root: Path) -> dict[str, NodeSpread | None]:
    return {name: entry.nodes for name, entry in newest(root).queries.items()}


@pytest.mark.timeout(300)
def test_it_is_killed_at_every_point_of_a_change_and_while_rows_run_out(tmp_path: Path) -> None:
    """With step 2 one ring grows passively and the other at once, with step 3 they shrink the other way round."""
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    main(quiet)
    check(quiet, CASE)
    published = POINTS.index("after_manifest")
    for step in (2, 3, 5):
        for point in POINTS[:published]:
            run_and_kill(killed, f"{point}:{step}", "tests.embedded.relocation_engine")
            assert newest(killed).step == step - 1
        run_and_kill(killed, f"{POINTS[published]}:{step}", "tests.embedded.relocation_engine")
        assert newest(killed).step == step
        assert any(one is not None and one.before is not None for one in spreads(killed).values())
    run_and_kill(killed, f"after_sink:{LAST - 1}", "tests.embedded.relocation_engine")
    main(killed)
    check(killed, CASE)
    assert spreads(killed) == spreads(quiet)
    assert {name: one and (one.nodes, one.before) for name, one in spreads(killed).items()} == {
        "d": (6, None),
        "aged": (4, None),
    }
