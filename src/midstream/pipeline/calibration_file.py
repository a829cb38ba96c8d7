"""The file that `midstream calibrate` writes, as settings of the optimizer have it: unit costs by name.

What the file says is taken into the settings, and so into the manifest: a step that is done again, on another machine
or after the file has changed, decides by the same costs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from midstream.model.errors import InputError
from midstream.optimizer.cost.calibration import units_from_json, units_to_json
from midstream.sql.job_file import JobFile
from midstream.sql.job_specs import CALIBRATION

MEASURE = "write it with midstream calibrate --out FILE"


def unit_costs(file: str | Path, place: str) -> dict[str, float]:
    """Read the unit costs in a file; raises `InputError` where there are none."""
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
        return units_to_json(units_from_json(found))
    except OSError as error:
        raise InputError(f"the calibration cannot be read: {error}", place=place, remedy=MEASURE) from error
    except (ValueError, TypeError) as error:
        raise InputError(f"{file} is not a calibration: {error}", place=place, remedy=MEASURE) from error


def with_unit_costs(file: JobFile) -> JobFile:
    """Replace the calibrations that a job file names by their unit costs."""
    each = {name: _with_unit_costs(one, f"[queries.{name}.optimizer]") for name, one in file.optimizers.items()}
    common = None if file.optimizer is None else _with_unit_costs(file.optimizer, "[optimizer]")
    return replace(file, optimizers=each, optimizer=common)


def _with_unit_costs(table: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    if CALIBRATION not in table:
        return table
    others = {name: value for name, value in table.items() if name != CALIBRATION}
    return {**others, "units": unit_costs(str(table[CALIBRATION]), place)}
