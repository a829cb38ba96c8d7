"""GHM keeps to its budget although a row costs the more the more have been fed."""

from __future__ import annotations

import pytest

from midstream.lab.hybmig_settings import HybMigTask, Machine
from midstream.lab.virtual_processor import Processor

TASK = HybMigTask(Machine(minute=12.0, rows=0.5, domain=20, speed=float("inf")), streams=5, ticks=12)


@pytest.mark.parametrize("budget", [60_000, 120_000])
def test_no_step_spends_much_more_than_its_budget(budget: int) -> None:
    alone = Processor(float("inf"), TASK.tick).play(TASK.workload(), TASK.old, TASK.end).column("comparisons")
    trace = TASK.play("ghm", {"budget": budget})
    done = trace.column("comparisons")
    first = TASK.ticks + 1
    # The migration's first step has no rows of its own; the plan alone has no such step.
    extra = [done[first], *(done[first + 1 :] - alone[first:])][: round(trace.stage.arrivals / TASK.tick)]
    assert len(extra) > 2 and sum(extra) > 4 * budget
    assert max(extra) < 1.5 * budget
