"""How the number of lanes is chosen: what loads the lanes, and what the optimizer has found; a manifest keeps both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midstream.model.ids import LaneId
from midstream.model.optimization import ProposalState


@dataclass(frozen=True)
class StepTiming:
    """What a host has measured: how many `workers` it has for lanes, and the seconds that the last step `took`.

    `interval` is that of the trigger, in seconds; None where a step begins when somebody pushes. `threads` is there
    where the workers are threads of one process, which may hold many lanes as one.
    """

    workers: int
    took: float | None = None
    interval: float | None = None
    threads: int | None = None

    def after(self, took: float | None, interval: float | None) -> StepTiming:
        """Return what the same host has measured of another step."""
        if took is self.took and interval is self.interval:
            return self
        return StepTiming(self.workers, took, interval, self.threads)


@dataclass(frozen=True)
class LaneLoad:
    """The time and the work of steps since the lanes were last spread, in step `rescaled`: decisions need both.

    `took` has the seconds of the last steps, newest first, where the trigger has an `interval`. `work` is what each
    lane did in the `steps` since the last review, in nanoseconds by unit costs: no clock is in it.
    """

    workers: int = 0
    interval: float | None = None
    took: tuple[float, ...] = ()
    steps: int = 0
    work: Mapping[LaneId, float] = field(default_factory=dict)
    rescaled: int = -1


@dataclass(frozen=True)
class Slowness:
    """What operations really take, as a multiple of their unit costs, learnt from steps that the host has timed.

    `work` is that of the newest step, in nanoseconds by unit costs; `took` and `by` are what an earlier one, which the
    next is compared with, took and did.
    """

    factor: float = 1.0
    work: float = 0.0
    took: float | None = None
    by: float = 0.0


@dataclass(frozen=True)
class LaneTrend:
    """What dampens decisions on lanes: for how many reviews another number has been `wanted`, and the last change.

    The optimizer has `set` the number, which was `former` before, `since` so many reviews; a unit of work took `pace`
    until then. So many times the usual number of reviews must agree as the `bar` says.
    """

    wanted: int = 0
    agreed: int = 0
    bar: int = 1
    former: int = 0
    set: int = 0
    since: int = 0
    pace: float = 0.0


@dataclass(frozen=True)
class LaneProposal:
    """Another number of lanes that was suggested; `gain` is the share of a step's time that it saves.

    `step` is when it was made, or when its state became what it is.
    """

    old: int
    lanes: int
    gain: float
    step: int
    state: ProposalState = "waits"
    reason: str = ""


@dataclass(frozen=True)
class LaneOptimization:
    """What the optimizer keeps of a job's steps and lanes; `decision` and `reason` are those of the last review."""

    reviewed: int | None = None
    load: LaneLoad = LaneLoad()
    slowness: Slowness = Slowness()
    trend: LaneTrend = LaneTrend()
    proposal: LaneProposal | None = None
    decision: str = ""
    reason: str = ""
