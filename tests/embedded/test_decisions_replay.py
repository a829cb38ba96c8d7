"""The process of an engine is killed amid a review, a decision and the migration it began: it decides the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from midstream.checkpoint.reader import Checkpoint
from midstream.job.crash_points import POINTS
from tests.embedded.decide_engine import answers, main
from tests.embedded.test_kills import run_and_kill

LOOP = ("plan_reviewed", "migration_begun", "migration_progressed", "migration_ended")


def decisions(root: Path) -> list[dict[str, Any]]:
    events = Checkpoint.open(root / "checkpoint").events()
    return [event for event in events if event["event"] in LOOP]


@pytest.mark.timeout(300)
def test_it_decides_the_same_wherever_it_is_killed(tmp_path: Path) -> None:
    """At each point of a step: one is killed at the decision, one while the migration is under way."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    main(undisturbed)
    expected = decisions(undisturbed)
    decided = next(event["step"] for event in expected if event.get("decision") == "switch")
    ended = next(event["step"] for event in expected if event["event"] == "migration_ended")
    assert ended > decided + 1, "the migration must last for some steps"
    published = POINTS.index("after_manifest")
    for point in POINTS[: published + 1]:
        run_and_kill(killed, f"{point}:{decided}", "tests.embedded.decide_engine")
    run_and_kill(killed, f"amid_tasks:{decided + 1}", "tests.embedded.decide_engine")
    run_and_kill(killed, f"after_sink:{ended}", "tests.embedded.decide_engine")
    main(killed)
    assert json.dumps(decisions(killed)) == json.dumps(expected)
    assert answers(killed / "answers") == answers(undisturbed / "answers")
