"""How plans are chosen: what users allow the optimizer, and what it has found so far; a manifest keeps both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from midstream.model.codec import EncodedOnce
from midstream.model.window import SECOND

Mode = Literal["off", "suggest", "ask", "auto"]
"""What a decision does: nothing is looked at; it is said; it waits for `approve` or `reject`; it is carried out."""

MODES: tuple[Mode, ...] = get_args(Mode)
"""From the most cautious one on: of the queries of a chain, which move together, the most cautious decides."""

MODE_OFF: Mode = "off"
"""Nothing is looked at."""

ProposalState = Literal["waits", "approved", "rejected", "withdrawn"]


@dataclass(frozen=True)
class OptimizerSettings:
    """What a user allows the optimizer, for a job or for one query.

    `policy` decides, by `options` of its own; `objective` and `weights` say what a plan costs. `allow` lists the plans
    and the strategies it may use; without plans any may be chosen, without strategies any may carry it. A query is
    reviewed every `review` microseconds of event time, and never in the `quiet` ones: pairs of microseconds after
    midnight, UTC; sooner where it does more than was foreseen. Reviews take the share `effort` of all work. `horizon`
    is for how long a gain counts, in microseconds; None leaves it to the policy. `lanes` is the mode in which a job's
    number of lanes is looked at; None: the same as that of plans. `units` are what operations cost on a machine, in
    nanoseconds and bytes by name, as `midstream calibrate` measures them; others have their default.
    """

    policy: str = "adaptive"
    mode: Mode = "suggest"
    objective: str = "work"
    weights: Mapping[str, float] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    review: int = 10 * SECOND
    effort: float = 0.03
    horizon: int | None = None
    quiet: tuple[tuple[int, int], ...] = ()
    options: Mapping[str, float | str] = field(default_factory=dict)
    lanes: Mode | None = None
    units: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts_time_alone(self) -> bool:
        """Whether plans cost nanoseconds of work a second only, without bytes of state and weights."""
        return self.objective != "memory" and not self.weights

    @property
    def lanes_mode(self) -> Mode:
        """The mode of decisions on the number of lanes."""
        return self.mode if self.lanes is None else self.lanes

    @property
    def looks_at_lanes(self) -> bool:
        """Whether the optimizer decides on the number of lanes."""
        return self.lanes_mode != "off"


@dataclass(frozen=True)
class Proposal:
    """Another plan that was suggested for a query: by which strategy it would move, and what it would gain.

    `gain` is the share of the present cost that it saves; `step` is when it was made, or when its state became what it
    is. `queries` are those that would move together.
    """

    old: str
    plan: str
    strategy: str
    gain: float
    step: int
    state: ProposalState = "waits"
    reason: str = ""
    queries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Optimization(EncodedOnce):
    """What the optimizer keeps of a query; of the queries of a chain, the first by name has what is common to all.

    `settings` are the query's own, None where the job's count. `reviewed` is the event time of the last review and
    `reviewed_in` its step, `plan` what ran then, `comparisons` what had been counted by then, and `price` what the
    review took, foreseen in nanoseconds. `memory` is the policy's, which `policy` wrote. A `pinned` query keeps its
    plan. `decision`, `reason` and the running plan's cost, `foreseen` and `real`, are those of the last review.

    Over many sources a review goes on for several steps: `searched` is the best plan so far, or what to weigh, with
    where the search goes on `at` and how many plans it has `tried` in vain.

    `seen` is the event time of the last look, `seen_in` its step, and `counted` what the query had done by then: rows
    in, comparisons, results, and the rows that each inner join made. `pace` is what it did between the last two looks
    that another plan might spare, in nanoseconds a second, and `spared` what was foreseen of that, None where the next
    look is to tell. `excess` is the work beyond, in nanoseconds since the last review; the next one comes when that is
    `hurdle` times its price.
    """

    settings: OptimizerSettings | None = None
    reviewed: int | None = None
    reviewed_in: int = 0
    plan: str = ""
    comparisons: int = 0
    price: float = 0.0
    policy: str = ""
    memory: Mapping[str, Any] = field(default_factory=dict)
    proposal: Proposal | None = None
    pinned: bool = False
    decision: str = ""
    reason: str = ""
    foreseen: float | None = None
    real: float | None = None
    seen: int = 0
    seen_in: int = 0
    counted: tuple[int, ...] = ()
    pace: float = 0.0
    spared: float | None = 0.0
    excess: float = 0.0
    hurdle: float = 1.0
    searched: str = ""
    at: int = 0
    tried: int = 0


@dataclass(frozen=True)
class ReviewBudget:
    """What may be spent on reviews: `left` nanoseconds in `step`, when all queries had `worked` for so many."""

    step: int = 0
    worked: float = 0.0
    left: float = 0.0
