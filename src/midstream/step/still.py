"""Steps that change nothing: a job whose streams are silent does not pay for all its states.

A step is a function of the manifest, the rows and the commands. Where one without rows and commands has led to the
manifest it began from, but for its number, so does the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from midstream.language.query import query_of
from midstream.model.command import Command
from midstream.model.events import StepDone
from midstream.model.lanes import StepTiming
from midstream.model.manifest import Manifest
from midstream.runtime.watermark import BEGINNING, watermarks
from midstream.step.living import state_rows
from midstream.step.result_columns import result_columns


def brings_nothing(batch: Mapping[str, pa.Table], commands: Sequence[Command], timing: StepTiming | None) -> bool:
    """Tell whether a step has no rows and no commands, and no time was measured that the optimizer would note."""
    measured = timing is not None and (timing.took is not None or timing.interval is not None)
    return not commands and not measured and not any(table.num_rows for table in batch.values())


def changed_nothing(before: Manifest, after: Manifest, results: Mapping[str, pa.Table]) -> bool:
    """Tell whether a step that brought nothing has changed nothing but the number of steps.

    An operator of a user's may count steps.
    """
    if any(table.num_rows for table in results.values()):
        return False
    if any(entry.operator is not None for entry in after.queries.values()):
        return False
    return replace(before, step=after.step, still=after.still) == after


def still_step(manifest: Manifest) -> tuple[Manifest, dict[str, pa.Table], StepDone]:
    """Do the step after one that changed nothing: return its manifest, no results, and its event."""
    marks = watermarks(manifest.streams, manifest.progress)
    done = StepDone(
        manifest.step + 1,
        dict.fromkeys(manifest.streams, 0),
        dict.fromkeys(manifest.queries, 0),
        0,
        state_rows(manifest),
        {name: None if mark == BEGINNING else mark for name, mark in marks.items()},
    )
    results = {
        name: result_columns(query_of(entry), entry.operator).empty_table() for name, entry in manifest.queries.items()
    }
    return replace(manifest, step=manifest.step + 1), results, done
