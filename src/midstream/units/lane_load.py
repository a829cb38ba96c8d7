"""What loads the lanes of a job, noted step by step: what a host has measured, and what was counted. Pure.

A decision is made by what the manifest before a step says. What a host has measured is noted in the manifest of the
step that it is given to, and counts from the next one on: so a step that is done again decides the same,
whatever is measured then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from midstream.model.counters import Counters
from midstream.model.frozen import revised
from midstream.model.ids import LaneId
from midstream.model.lane_choice import LaneLoad, LaneTrend, Slowness, StepTiming
from midstream.model.manifest import Manifest
from midstream.optimizer.cost.calibration import corrected
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.decayed_mean import DecayedMean
from midstream.units.lane_step import LaneOutput

NANOSECONDS = 1_000_000_000
"""Of a second."""

COMPARED = 0.25
"""Two steps tell how slow operations are where the work of one is less than that of the other by this share."""

UNITS = JoinUnitCosts()
"""Lanes are compared with each other: what counts is how the costs of operations stand to each other."""


def timed(manifest: Manifest, lanes_before: int, timing: StepTiming | None) -> Manifest:
    """Note what the host has measured of the step before in the manifest that a step begins with."""
    kept = manifest.lane_optimization
    load, trend, slowness = kept.load, kept.trend, _corrected(manifest, timing)
    if manifest.shares != lanes_before:
        load = LaneLoad(load.workers, load.interval, rescaled=manifest.step)
        trend = trend if trend.set == manifest.lanes else LaneTrend(bar=trend.bar)
    if timing is not None and manifest.optimizer.looks_at_lanes:
        if (load.workers, load.interval) != (timing.workers, timing.interval):
            load = revised(load, workers=timing.workers, interval=timing.interval)
        if timing.interval is None:
            load = revised(load, took=()) if load.took else load
        elif timing.took is not None and manifest.step - 1 > load.rescaled:
            load = revised(load, took=DecayedMean(load.took).observed(timing.took).observations)
    if load is kept.load and trend is kept.trend and slowness is kept.slowness:
        return manifest
    after = revised(kept, load=load, trend=trend, slowness=slowness)
    return manifest if after == kept else revised(manifest, lane_optimization=after)


def _corrected(manifest: Manifest, timing: StepTiming | None) -> Slowness:
    # The newest step is compared with one that did much more, or much less.
    kept, load = manifest.lane_optimization.slowness, manifest.lane_optimization.load
    known = is_watched(manifest) and kept.work and manifest.step - 1 > load.rescaled
    if timing is None or timing.took is None or not known:
        return kept
    took = timing.took * NANOSECONDS * min(manifest.lanes, timing.workers)
    more = kept.work - kept.by
    if kept.took is not None and abs(more) < COMPARED * max(kept.work, kept.by):
        return kept
    factor = kept.factor if kept.took is None else corrected(kept.factor, more, took - kept.took)
    return Slowness(factor, kept.work, took, kept.work)


def is_watched(manifest: Manifest) -> bool:
    """Return whether there may be something to decide. That needs a host that has said what it has, and steps that are
    due or several lanes.

    Lanes that are held as one cost what as many as there are threads would.
    """
    load = manifest.lane_optimization.load
    watched = manifest.optimizer.looks_at_lanes and load.workers > 0
    return watched and not manifest.held_in and (manifest.lanes > 1 or load.interval is not None)


def worked(manifest: Manifest, outputs: Mapping[LaneId, LaneOutput]) -> Manifest:
    """Note what each lane has done in the manifest after a step. A step that spreads lanes again does not count."""
    kept = manifest.lane_optimization
    if not is_watched(manifest) or kept.load.rescaled == manifest.step:
        return manifest
    before = kept.load.work
    # How many nodes a query is spread over is no matter of the lanes.
    spread = {entry.group for entry in manifest.queries.values() if entry.nodes is not None}
    done = {lane: work_of(outputs[lane]) for lane in sorted(outputs, key=_order) if lane.group not in spread}
    work = {lane: before.get(lane, 0.0) + own for lane, own in done.items()}
    load = replace(kept.load, steps=kept.load.steps + 1, work=work)
    slowness = replace(kept.slowness, work=sum(done.values()))
    return replace(manifest, lane_optimization=replace(kept, load=load, slowness=slowness))


def work_of(output: LaneOutput) -> float:
    """Compute what a lane has done in a step, in nanoseconds by unit costs."""
    done = Counters.sum(counters for operator, counters in output.counters.items() if operator.slice is None)
    probed = UNITS.joining(float(done.rows_in), float(done.comparisons), float(done.rows_out))
    return probed + UNITS.insert * done.inserted


def _order(lane: LaneId) -> tuple[str, int]:
    return lane.group, lane.number


def state_rows(manifest: Manifest) -> int:
    """Count the rows and combinations alive in all lanes."""
    return sum([lane.rows for lane in manifest.lane_states.values()])
