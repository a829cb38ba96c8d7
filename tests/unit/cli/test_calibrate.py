"""`midstream calibrate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.cli.main import main
from midstream.lab import timed_runs
from midstream.lab.timed_runs import TREE, CalibrationRun
from midstream.optimizer.cost.calibration import units_from_json


def test_unit_costs_are_shown_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_runs, "RUNS", (CalibrationRun(TREE, 5.0, 5.0), CalibrationRun(TREE, 30.0, 50.0)))
    assert main(["calibrate", "--out", str(tmp_path / "of/units.json"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "of/units.json").read_text()) == shown
    assert units_from_json(shown).operator_step > 0
    assert main(["calibrate"]) == 0
    assert "a row that looks for partners" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["file/units.json", "folder"])
def test_what_cannot_be_written_is_said_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(timed_runs, "RUNS", ())  # To measure nothing would end with another error.
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert main(["calibrate", "--out", str(tmp_path / name)]) in (1, 2)
    assert main(["lab", "om_table_1", "--quick", "--out", str(tmp_path / "file/x")]) == 1
    said = capsys.readouterr().err
    assert said.count("Remedy: ") == 2 and "MIDSTREAM_TRACEBACK" not in said
