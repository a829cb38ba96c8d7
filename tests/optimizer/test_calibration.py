"""What `midstream calibrate` has measured is what plans are weighed by, wherever a job is run again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import midstream as ms
from midstream.checkpoint.plans_report import plans_report
from midstream.cli.main import main
from midstream.embedded.job_run import FileJob
from midstream.model.codec import decode, encode
from midstream.model.lane_choice import LaneOptimization
from midstream.model.optimization import OptimizerSettings
from midstream.optimizer.alternatives import cost_model
from midstream.optimizer.cost.calibration import units_to_json
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.pipeline.calibration_file import unit_costs
from midstream.sql.job_file import parse_job
from tests.optimizer.drifting import BAD_FIRST, engine, rows, run
from tests.optimizer.test_declared import JOB, root

__all__ = ["root"]

SLOW = units_to_json(JoinUnitCosts(comparison=200, result=600, insert=1500, probe=2500, route=4000, operator_step=3e6))


def cost(made: ms.Engine) -> float:
    return float(next(one["cost"] for one in made.plans("q").plans if one["plan"] == "((A B) C)"))


def test_plans_are_weighed_by_the_unit_costs_that_are_given() -> None:
    plain, slow = engine(plan="((A B) C)"), engine(plan="((A B) C)")
    slow.optimize("q", mode="suggest", units=SLOW)
    run(plain, range(12))
    run(slow, range(12))
    assert cost(slow) == pytest.approx(10 * cost(plain), rel=1e-6)
    settings = slow.manifest.optimizations["q"].settings
    assert settings is not None and decode(OptimizerSettings, encode(settings)) == settings


def test_a_job_file_names_the_calibration_and_the_manifest_keeps_what_it_said(root: Path) -> None:
    written = root / "units.json"
    written.write_text(json.dumps(SLOW))
    job = JOB.format(root=root) + f'[optimizer]\nmode = "suggest"\ncalibration = "{written}"'
    with FileJob(parse_job(job)) as made:
        made.step()
    with ms.Engine(checkpoint=root / "ckpt") as opened:
        written.unlink()
        assert opened.manifest.optimizer.units == SLOW


def test_the_command_line_reads_it(tmp_path: Path) -> None:
    path, written = str(tmp_path / "ckpt"), tmp_path / "units.json"
    written.write_text(json.dumps({"probe": 99.0}))
    with engine(checkpoint=path) as made:
        run(made, range(2))
        assert main(["optimize", path, "q", "--mode", "ask", "--calibration", str(written)]) == 0
        run(made, [2])
        settings = made.manifest.optimizations["q"].settings
    assert settings is not None and settings.units == units_to_json(JoinUnitCosts(probe=99.0))


@pytest.mark.parametrize("text", ["nothing", '{"probes": 1}', '{"probe": -1}', '{"probe": "dear"}', "[]", None])
def test_what_is_no_calibration_is_refused(tmp_path: Path, text: str | None) -> None:
    written = tmp_path / "units.json"
    if text is not None:
        written.write_text(text)
    with pytest.raises(ms.InputError, match="calibration") as caught:
        unit_costs(written, "here")
    assert (caught.value.place, caught.value.remedy) == ("here", "write it with midstream calibrate --out FILE")
    with pytest.raises(ms.QueryError, match="unknown unit cost 'probes'"):
        engine().optimize(units={"probes": 1.0})


def test_unit_costs_are_corrected_by_what_busier_steps_take_more() -> None:
    """Each step takes half a second by any plan, and three times the unit costs of what it does."""
    made = engine(plan="((A B) C)", lanes=2)
    made.optimize(mode="suggest")
    took: float | None = None
    for step in range(160):
        made.push(rows(step, BAD_FIRST, rate=60 if step % 2 else 10), took=took)
        work = made.manifest.lane_optimization.slowness.work
        took = 0.5 + 3 * work / 1e9 / min(2, made._threads)
    learnt = made.manifest.lane_optimization.slowness
    assert learnt.factor == pytest.approx(3, rel=0.05)
    plain = replace(made.manifest, lane_optimization=LaneOptimization())
    known, unknown = (plans_report(one, "q", made._store).plans[0]["cost"] for one in (made.manifest, plain))
    assert known == unknown, "where nothing but work counts a host's clock changes no decision"
    mixed, alone = (cost_model("work", weights, None, learnt.factor) for weights in ({"memory": 0.01}, {}))
    assert mixed.units.comparison == pytest.approx(learnt.factor * alone.units.comparison)
    again = engine(plan="((A B) C)", lanes=2)
    again.optimize(mode="suggest")
    run(again, range(20))
    assert again.manifest.lane_optimization.slowness.factor == 1, "nobody has timed it"
