"""The contract between the step driver and the strategies that carry a running query from plan to plan.

The driver owns time, order, watermark and commit; a strategy owns only the movement of state. Whatever runs a query is
a `Box`: a plan, or a migration under way, which is nothing else to its surroundings. So one migration may begin while
another runs: the running one is its old box.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from typing_extensions import override

from midstream.migration.option import DECOMPOSE, Option
from midstream.model.counters import Counters
from midstream.model.errors import CheckpointError
from midstream.model.events import StateRebuilt
from midstream.operators.match import keyed
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.tree import Plan
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations, concatenate
from midstream.state.join_state import JoinState
from midstream.state.specs import StateSpec


class Box(ABC):
    """Anything that takes a step's rows and gives the step's results."""

    @property
    @abstractmethod
    def results(self) -> tuple[Operator, ...]:
        """The operators whose output is the query's result, should it have to be computed anew."""

    @abstractmethod
    def operators(self) -> tuple[Operator, ...]:
        """The roots of all operators the box runs, old and new."""

    @abstractmethod
    def advance(self, lane: Lane) -> tuple[Combinations, ...]:
        """The step's delta of each root of the query, exactly once each result."""

    def withheld(self, lane: Lane) -> Combinations | None:
        """Results of this step that are not to be delivered yet, after `advance`; None if nothing is held back."""
        return None

    @abstractmethod
    def snapshot(self) -> Mapping[str, Any]:
        """The box as JSON values; its chunks are listed with the lane's states."""

    def settled(self, lane: Lane) -> Box:
        """Called at the end of each step: the box to go on with, another one once a migration is done."""
        return self

    @property
    @abstractmethod
    def target(self) -> PlanBox:
        """The plan by itself, to which every migration under way leads."""

    def reports(self, lane: Lane) -> dict[str, dict[str, Any]]:
        """What each migration under way did in this step and how it stands, by its mark, as JSON values."""
        return {}


@dataclass(frozen=True)
class PlanBox(Box):
    """A plan by itself."""

    plan: Plan
    notation: str
    roots: tuple[Operator, ...]

    @override
    @property
    def results(self) -> tuple[Operator, ...]:
        return self.roots

    @override
    def operators(self) -> tuple[Operator, ...]:
        return self.roots

    @override
    @property
    def target(self) -> PlanBox:
        return self

    @override
    def advance(self, lane: Lane) -> tuple[Combinations, ...]:
        return tuple(root.drive(lane) for root in self.roots)

    @override
    def snapshot(self) -> Mapping[str, Any]:
        return {"box": "plan", "plan": self.notation}


@dataclass(frozen=True)
class Move:
    """What a strategy is asked to do, for it to accept or refuse before anything is touched.

    `plain`: the answer is the join's results as they come, neither an aggregate nor a difference.
    """

    query: str
    old: str
    new: Plan
    stateful: bool
    options: Mapping[str, Any]
    plain: bool = True


class Strategy(ABC):
    """One way to carry a running query to another plan; found by discovery, known to nobody by name."""

    name: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = (DECOMPOSE,)
    feeds: ClassVar[Literal["at once", "beside", "queue"] | None] = None
    """How it brings a user's operator to where another one is; None where it would have to look into its state."""

    def refusal(self, move: Move) -> str | None:
        """Why the strategy cannot carry this box, or None if it can."""
        return None

    def wrong(self, options: Mapping[str, Any]) -> str | None:
        """What is wrong with the values of the options given, or None; their names have been checked.

        >>> from midstream.migration.discovery import strategy
        >>> strategy("ghm").wrong({"budget": -1})
        'budget is a number of comparisons a step, not -1'
        """
        given = (option.wrong(options[option.name]) for option in self.options if option.name in options)
        return next((wrong for wrong in given if wrong), None)

    def predict(self, situation: Situation) -> Prediction | None:
        """What the migration would cost, from live figures; None where the strategy cannot carry it."""
        return None

    @abstractmethod
    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        """Take over at the beginning of a step, before its rows are seen; the box returned runs from this step on.

        `mark` is unique among all migrations.
        """


def ensure(lane: Lane, states: Sequence[tuple[Operator, StateSpec]], *, event: bool = True) -> list[str]:
    """See to it that the states are there: listed ones are loaded, missing ones computed from what lies below them.

    The states come children first. A missing state whose signature is there under another index is only sorted anew;
    otherwise it is joined from the states of the operator below (Zhu §4.1.2, Algorithm 1). A damaged chunk counts as
    missing, since everything but base rows can be computed again. Gives the ids of the states that were computed.
    """
    computed = []
    for producer, spec in states:
        try:
            if lane.holds(spec):
                lane.join(spec)
                continue
        except CheckpointError:
            lane.forget(spec)
        before = lane.comparisons
        sibling = lane.sibling(spec)
        content = producer.content(lane) if sibling is None else concatenate(sibling) if sibling else None
        # What lies below may be kept for longer than this state is wanted.
        living = None if content is None else content.purge(lane.bounds(spec.id))
        parts = [] if living is None else [keyed(lane, producer.rows, living, spec.index, spec.key)]
        state = JoinState(spec, parts)
        lane.put(state)
        if state.live:
            computed.append(spec.id)
            lane.count(f"state {spec.id}", Counters(inserted=state.live))
            if event:
                cost = lane.comparisons - before
                lane.tell(StateRebuilt(lane.clock.step, lane.name, spec.id, state.live, cost))
    return computed


def states_of(roots: Sequence[Operator]) -> list[tuple[Operator, StateSpec]]:
    """The states of all operators below the roots, children first."""
    return [state for root in roots for operator in root.walk() for state in operator.states()]
