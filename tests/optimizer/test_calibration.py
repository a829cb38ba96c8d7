"""What `midstream calibrate` has measured is what plans are weighed by, wherever a job is run again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.engine.job_run import FileJob
from midstream.job.calibration_file import unit_costs
from midstream.language.job_file import parse_job
from midstream.model.codec import decode, encode
from midstream.model.optimization import OptimizerSettings
from midstream.optimizer.cost.calibration import units_to_json
from midstream.optimizer.cost.units import JoinUnitCosts
from tests.optimizer.drifting import engine, run
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
