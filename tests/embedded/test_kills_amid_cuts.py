"""The process of an engine is killed as slices of shared rings are cut by load: sinks are those of a quiet run."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.model.node_spread import NodeSpread
from midstream.pipeline.crash_points import POINTS
from midstream.ring.lengthening import STEPS_BETWEEN
from tests.embedded.cut_by_load_engine import CASE, SCHEMES, main
from tests.embedded.test_kills import newest, run_and_kill
from tests.embedded.test_kills_amid_relocation import check, spreads

PROGRAM = "tests.embedded.cut_by_load_engine"
LOOK, CUT, AGAIN = STEPS_BETWEEN, 2 * STEPS_BETWEEN, 3 * STEPS_BETWEEN
"""With the first what nodes compared is noted, with the second slices are cut by it, and with the third anew."""


def cuts(root: Path) -> dict[str, tuple[object, ...]]:
    """Where the slices of each query's ring end, and the work that was looked at last."""
    found = {name: one for name, one in spreads(root).items() if isinstance(one, NodeSpread)}
    return {name: (one.cuts, one.pieces, one.weighed) for name, one in found.items()}


@pytest.mark.timeout(600)
def test_it_is_killed_at_every_point_of_a_cut_and_while_rows_move(tmp_path: Path) -> None:
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    main(quiet)
    check(quiet, CASE)
    published = POINTS.index("after_manifest")
    for step in (LOOK, CUT, CUT + 1, AGAIN):
        before = cuts(killed) if step > LOOK else {}
        for point in POINTS[:published]:
            run_and_kill(killed, f"{point}:{step}", PROGRAM)
            assert newest(killed).step == step - 1
        run_and_kill(killed, f"{POINTS[published]}:{step}", PROGRAM)
        assert newest(killed).step == step
        changed = {name for name, one in cuts(killed).items() if one != before.get(name)}
        assert len(changed) == (0 if step == CUT + 1 else 2 * len(SCHEMES))
        if step == CUT:
            assert all(ends or pieces > 1 for ends, pieces, _ in cuts(killed).values()), "some ring was not cut"
    main(killed)
    check(killed, CASE)
    assert spreads(killed) == spreads(quiet)
    queries = newest(killed).queries
    assert {len({queries[f"{what}_{scheme}"].group for what in ("short", "wide")}) for scheme in SCHEMES} == {1}
