"""How plans are chosen: what users allow the optimizer, and what it has found so far; a manifest keeps both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from midstream.model.codec import EncodedOnce
from midstream.model.counters import Counters
from midstream.model.ids import CounterKey
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
    midnight, UTC. A review that takes long waits until the queries have worked so much that it is the share `effort` of
    that. `horizon` is for how long a gain counts, in microseconds; None leaves it to the policy. `lanes` is the mode in
    which a job's number of lanes is looked at; None: the same as that of plans. `units` are what operations cost on
    a machine, in nanoseconds and bytes by name, as `midstream calibrate` measures them; others have their default.
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
    options: Mapping[str, float] = field(default_factory=dict)
    lanes: Mode | None = None
    units: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts_time_alone(self) -> bool:
        """Whether plans cost nanoseconds of work a second, and not bytes of state too, or as much as weights say."""
        return self.objective != "memory" and not self.weights

    @property
    def lanes_mode(self) -> Mode:
        """What a decision on the number of lanes does."""
        return self.mode if self.lanes is None else self.lanes

    @property
    def looks_at_lanes(self) -> bool:
        """Whether the number of lanes is anything to decide on."""
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
    `reviewed_in` its step, `plan` what ran then, and `comparisons` what had been counted by then; `work` is what the
    queries had done by then and `price` what the review took, both foreseen in nanoseconds; the price is 0 where the
    next review is not to be put off. `memory` is the policy's, which `policy` wrote. A `pinned` query keeps its plan.
    `settled`: the policy has nothing to decide while the streams stay as they are, though not after `settled_until`.
    Whether they do is seen by what was `counted` at the last look, at the event time `seen`, in all and `made` by each
    of its inner `joins`, whose counters are named there, and by the `paces` at the last reviews, in a second. By the
    last review the plan was `ahead` of the best other one by so many nanoseconds a second; what seems to be `lost`
    since then leads to the next. `saved` is what was not spent on reviews. `decision`, `reason` and the running plan's
    cost, `foreseen` and `real`, are those of the last review.
    """

    settings: OptimizerSettings | None = None
    reviewed: int | None = None
    reviewed_in: int = 0
    plan: str = ""
    comparisons: int = 0
    work: float = 0.0
    price: float = 0.0
    policy: str = ""
    memory: Mapping[str, Any] = field(default_factory=dict)
    proposal: Proposal | None = None
    pinned: bool = False
    decision: str = ""
    reason: str = ""
    foreseen: float | None = None
    real: float | None = None
    settled: bool = False
    settled_until: int | None = None
    seen: int | None = None
    counted: Counters = field(default_factory=Counters)
    paces: tuple[tuple[float, ...], ...] = ()
    joins: tuple[tuple[CounterKey, ...], ...] = ()
    made: tuple[int, ...] = ()
    ahead: float | None = None
    lost: float = 0.0
    saved: float = 0.0
