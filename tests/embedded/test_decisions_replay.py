"""The process of an engine is killed amid a review, a decision and the migration it began: it decides the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from midstream.checkpoint.reader import Checkpoint
from midstream.pipeline.crash_points import POINTS
from tests.embedded import decide_lanes_engine
from tests.embedded.decide_engine import answers, conditions_file, main, policy_file
from tests.embedded.test_kills import newest, run_and_kill

LOOP = ("plan_reviewed", "migration_begun", "migration_progressed", "migration_ended")
LANES = ("lanes_reviewed", "lanes_rescaled")


def decisions(root: Path, kinds: tuple[str, ...] = LOOP) -> list[dict[str, Any]]:
    events = Checkpoint.open(root / "checkpoint").events()
    return [event for event in events if event["event"] in kinds]


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


@pytest.mark.timeout(300)
def test_conditions_are_put_in_the_same_order_wherever_it_is_killed(tmp_path: Path) -> None:
    """At each point of the step that puts them in another order."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for root in (undisturbed, killed):
        root.mkdir()
        policy_file(root).write_text("sel_lambda_chart estimates=om")
        conditions_file(root).write_text("A.k < 9 AND A.k < 2")
    main(undisturbed)
    expected = decisions(undisturbed)
    decided = next(event["step"] for event in expected if event.get("decision") == "switch")
    for point in POINTS[: POINTS.index("after_manifest") + 1]:
        run_and_kill(killed, f"{point}:{decided}", "tests.embedded.decide_engine")
    main(killed)
    assert json.dumps(decisions(killed)) == json.dumps(expected)
    assert newest(killed).operators == newest(undisturbed).operators
    assert answers(killed / "answers") == answers(undisturbed / "answers") != []


@pytest.mark.timeout(300)
def test_it_sets_the_same_number_of_lanes_wherever_it_is_killed(tmp_path: Path) -> None:
    """Amid a review that waits for others to agree, at each point of the step that decides, and in the next one."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    decide_lanes_engine.main(undisturbed)
    expected = decisions(undisturbed, LANES)
    reviewed = next(event["step"] for event in expected if event["event"] == "lanes_reviewed")
    (decided,) = [event["step"] for event in expected if event.get("decision") == "switch"]
    assert [event["old"] for event in expected if event["event"] == "lanes_rescaled"] == [1]
    assert reviewed < decided < decide_lanes_engine.STEPS - 2
    run_and_kill(killed, f"before_manifest:{reviewed}", "tests.embedded.decide_lanes_engine")
    published = POINTS.index("after_manifest")
    for point in POINTS[: published + 1]:
        run_and_kill(killed, f"{point}:{decided}", "tests.embedded.decide_lanes_engine")
        assert newest(killed).lanes == (2 if point == "after_manifest" else 1)
    run_and_kill(killed, f"after_sink:{decided + 1}", "tests.embedded.decide_lanes_engine")
    decide_lanes_engine.main(killed)
    assert json.dumps(decisions(killed, LANES)) == json.dumps(expected)
    assert newest(killed).lane_optimization == newest(undisturbed).lane_optimization
    assert answers(killed / "answers") == answers(undisturbed / "answers") != []
