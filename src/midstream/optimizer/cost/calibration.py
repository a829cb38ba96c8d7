"""Unit costs from measurements: of runs on this machine, and of the steps of a live query. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

import numpy as np

from midstream.optimizer.cost.units import JoinUnitCosts

SLOWEST_CORRECTION, FASTEST_CORRECTION = 1 / 8, 8.0
"""One step may be held up by anything: it is not taken to be more wrong than this."""

MEMORY_OF_STEPS = 20  # how many steps it takes until a lasting difference is corrected for the most part


@dataclass(frozen=True)
class TimedWork:
    """What operators did together in some steps, and the nanoseconds that it took.

    `steps` and `outputs` (rows of the answer) take time too, but the same by any plan.
    """

    nanoseconds: float
    comparisons: float = 0.0
    results: float = 0.0
    inserts: float = 0.0
    probes: float = 0.0
    routes: float = 0.0
    operator_steps: float = 0.0
    steps: float = 0.0
    outputs: float = 0.0


OPERATIONS = {
    "comparison": "comparisons",
    "result": "results",
    "insert": "inserts",
    "probe": "probes",
    "route": "routes",
    "operator_step": "operator_steps",
}
"""For each unit cost what is counted of it."""

BY_ANY_PLAN = ("steps", "outputs")


def fitted(timings: Sequence[TimedWork], otherwise: JoinUnitCosts | None = None) -> JoinUnitCosts:
    """Fit the unit costs that explain the timings best: least squares of the relative errors, none below nothing.

    What was not done in any timing keeps its cost of `otherwise`; nothing else is taken from there.

    >>> runs = [TimedWork(5.0, comparisons=1), TimedWork(30.0, comparisons=2, operator_steps=2)]
    >>> units = fitted(runs)
    >>> round(units.comparison), round(units.operator_step)
    (5, 10)
    """
    start = otherwise or JoinUnitCosts()
    done = [unit for unit, counted in OPERATIONS.items() if any(getattr(t, counted) for t in timings)]
    if not done:
        return start
    counted = [*(OPERATIONS[unit] for unit in done), *BY_ANY_PLAN]
    taken = np.array([timing.nanoseconds for timing in timings])
    counts = np.array([[getattr(timing, name) for name in counted] for timing in timings], np.float64)
    found = _least_squares_of_none_below_zero(counts / taken[:, None], np.ones(len(timings)))
    return replace(start, **dict(zip(done, found.tolist(), strict=False)))


def corrected(slowness: float, foreseen: float, real: float) -> float:
    """Update the multiple of unit costs that operations take, by one more comparison of foreseen and real time.

    What is compared is by how much a step took longer than another one, for what it did more: what a step takes by any
    plan is in both. All unit costs change by one factor, a little each time, so that a machine that is slower or busier
    than the one that was measured is priced as it is; work as it is compared between plans stays in proportion.

    >>> 1 < corrected(1.0, foreseen=1.0, real=2.0) < 1.1
    True
    """
    if foreseen == 0:
        return slowness
    found = real / (foreseen * slowness)
    correction: float = min(max(found, SLOWEST_CORRECTION), FASTEST_CORRECTION) ** (1 / MEMORY_OF_STEPS)
    return slowness * correction


def slowed(units: JoinUnitCosts, slowness: float) -> JoinUnitCosts:
    """Multiply the unit costs of time by a factor."""
    return replace(units, **{unit: getattr(units, unit) * slowness for unit in OPERATIONS})


def units_to_json(units: JoinUnitCosts) -> dict[str, float]:
    """Encode the unit costs as JSON values."""
    return asdict(units)


def units_from_json(values: object) -> JoinUnitCosts:
    """Decode what `units_to_json` wrote; missing unit costs are the defaults. Raises `ValueError`."""
    names = {field.name for field in fields(JoinUnitCosts)}
    if not isinstance(values, Mapping) or not values.keys() <= names:
        raise ValueError(f"unit costs must be numbers, and their names must be among {', '.join(sorted(names))}")
    return JoinUnitCosts(**{name: float(value) for name, value in values.items()})


def _least_squares_of_none_below_zero(
    counts: np.ndarray[tuple[int, int], np.dtype[np.float64]], taken: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    # Lawson and Hanson's active set in its simplest form: what comes out below zero is taken out, one by one.
    free: list[int] = list(range(counts.shape[1]))
    found = np.zeros(counts.shape[1])
    while free:
        scale = np.maximum(np.abs(counts[:, free]).max(axis=0), 1e-300)
        solved = np.linalg.lstsq(counts[:, free] / scale, taken, rcond=None)[0] / scale
        if (solved >= 0).all():
            found[free] = solved
            break
        free.pop(int(np.argmin(solved * scale)))
    return found
