"""A closed engine takes nothing more, and can still be looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import midstream as ms
from tests.embedded.test_checkpoint import SQL, opened, step
from tests.unit.building import DDL

COMMANDS: dict[str, Callable[[ms.Engine], object]] = {
    "push": lambda engine: engine.push(step(1)),
    "push of nothing": lambda engine: engine.push(),
    "stream": lambda engine: engine.create_stream("C", DDL, timestamp="ts"),
    "query": lambda engine: engine.add_query("more", SQL),
    "drop": lambda engine: engine.drop_query("pairs"),
    "rescale": lambda engine: engine.rescale(2),
    "table": lambda engine: engine.table("rates", [{"k": 1}]),
    "optimizer": lambda engine: engine.declare_optimizer({}),
}


@pytest.mark.parametrize("call", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("on_checkpoint", [False, True], ids=["in memory", "on a checkpoint"])
def test_a_closed_engine_takes_nothing_more(
    tmp_path: Path, on_checkpoint: bool, call: Callable[[ms.Engine], object]
) -> None:
    """Also while another engine has the checkpoint, and goes on from where this one stopped."""
    engine = opened(tmp_path) if on_checkpoint else ms.Engine(lanes=2, threads=2)
    if not on_checkpoint:
        for name in "AB":
            engine.create_stream(name, DDL, timestamp="ts")
        engine.add_query("pairs", SQL)
    with engine:
        engine.push(step(0))
        engine.close()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ms.InputError, match="the engine is closed") as refused:
        call(engine)
    assert refused.value.remedy and refused.value.place
    assert engine.manifest.step == 0 and not engine.waits and sorted(tmp_path.rglob("*")) == before
    assert engine.metrics()["state_rows"] and engine.events and not engine.late and "pairs" in engine.explain("pairs")
    engine.save(tmp_path / "saved")
    if on_checkpoint:
        with opened(tmp_path) as other:
            with pytest.raises(ms.InputError, match="the engine is closed"):
                call(engine)
            assert other.push(step(1))["pairs"].num_rows
        engine.close()
