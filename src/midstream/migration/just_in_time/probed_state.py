"""The states of a plan as they are completed: what each is made of, and in which order (JISC §4, Procedures 2-3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from midstream.expr.expression import Expression
from midstream.expr.functions import asks_user
from midstream.migration.just_in_time.distinct_keys import KeyColumn
from midstream.model.ids import StateId, StateKind
from midstream.operators.join_condition import JoinCondition
from midstream.operators.window_join import WindowJoin
from midstream.plan.decompose import Sources
from midstream.runtime.operator import Operator
from midstream.state.specs import StateSpec


@dataclass(frozen=True)
class ProbedState:
    """A state that a join probes, and the join that fills it; a unit's state is complete and has none below.

    `primary` is the column by whose codes it is completed for what probes it. Of several key columns of an equality the
    first one stands for all: what has its key includes what has all of them. Without an index it is the rows of a
    source: the `conditions` of the probing join say which of these a probing row can meet. It is None where every
    condition reads several sources of the state, or asks a user's predicate: then nothing less than the whole serves.
    """

    spec: StateSpec
    operator: Operator
    below: Fork | None
    primary: KeyColumn | None = None
    conditions: tuple[Expression, ...] = ()

    @staticmethod
    def of(spec: StateSpec, operator: Operator, on: JoinCondition, units: frozenset[Sources]) -> ProbedState:
        """Describe the state that a join condition probes, over the operator that fills it."""
        if not isinstance(operator, WindowJoin) or operator.labels in units:
            return ProbedState(spec, operator, None)
        below = Fork.of(operator, units)
        if spec.index != "scan":
            return ProbedState(spec, operator, below, KeyColumn.of(spec.index, spec.key[0]))
        read = [(e, e.aliases() & operator.labels) for e in on.residual if not asks_user(e)]
        source = next((min(sources) for _, sources in read if len(sources) == 1), None)
        if source is None:
            return ProbedState(spec, operator, below)
        conditions = tuple(e for e, sources in read if sources == {source})
        return ProbedState(spec, operator, below, KeyColumn("scan", source), conditions)

    @property
    def labels(self) -> Sources:
        """The sources combined."""
        return self.operator.labels

    @property
    def name(self) -> str:
        """A digest that is unique among the states of its plan and of the plan's mirror image."""
        return self.spec.signature.digest()

    @property
    def table(self) -> StateId:
        """The id of the table of its attempts."""
        return StateId(f"{self.spec.id.owner}.{self.spec.id.content}", self.spec.id.part, StateKind.TABLE.value)

    @property
    def counted(self) -> str | None:
        """The name of the column whose keys say whether it is complete."""
        return None if self.primary is None else self.primary.name

    def is_sorted_by(self, column: KeyColumn) -> bool:
        """Return whether the state is sorted by the codes of the column."""
        own = [KeyColumn.of(self.spec.index, e) for e in self.spec.key]
        return own == [column]


@dataclass(frozen=True)
class Order:
    """In which order the sides of a join are completed: `first` for the keys of `ask`, then `second`.

    The second is completed for those keys of its column `other` that the first one's combinations have in their column
    `link`. Both are None where the join knows no equality: then it is completed for what these combinations can meet.
    """

    first: ProbedState
    ask: KeyColumn | None
    link: KeyColumn | None
    second: ProbedState
    other: KeyColumn | None


@dataclass(frozen=True)
class Probe:
    """One side of a join: the new rows of `other` probe `state`."""

    fork: Fork
    state: ProbedState
    other: ProbedState

    @property
    def key(self) -> KeyColumn | None:
        """The column of the other side that has the code to probe by; None without an index."""
        on = self.fork.join.on
        if on.index == "scan":
            return None
        return KeyColumn.of(on.index, (on.right_key if self.is_left else on.left_key)[0])

    @property
    def is_left(self) -> bool:
        """Whether the state is the join's left one."""
        return self.state is self.fork.left


@dataclass(frozen=True)
class Fork:
    """A join and the two states it probes."""

    join: WindowJoin
    left: ProbedState
    right: ProbedState

    @staticmethod
    def of(join: WindowJoin, units: frozenset[Sources]) -> Fork:
        """Describe the joins from this one down to the units."""
        left = ProbedState.of(join.left_state, join.left, join.on, units)
        return Fork(join, left, ProbedState.of(join.right_state, join.right, join.on, units))

    def forks(self) -> Iterator[Fork]:
        """Walk this fork and those below, children first."""
        for side in (self.left, self.right):
            if side.below is not None:
                yield from side.below.forks()
        yield self

    def probed_states(self) -> Iterator[ProbedState]:
        """Walk the states that can be incomplete, deepest first."""
        for fork in self.forks():
            yield from (side for side in (fork.left, fork.right) if side.below is not None)

    def probes(self) -> tuple[Probe, Probe]:
        """Return how each of the two states is probed."""
        return (Probe(self, self.left, self.right), Probe(self, self.right, self.left))

    def order(self, column: KeyColumn | None) -> Order:
        """Decide in which order to find the combinations with certain keys of a column, or all combinations.

        The side that owns the column comes first. Where both do, or all are needed, a unit comes first: it lacks
        nothing.
        """
        on, at = self.join.on, self.position(column)
        one, other = (self.left, on.left_key), (self.right, on.right_key)
        if at is not None or column is None:
            turn = one[0].below is not None and other[0].below is None
        else:
            turn = column.source not in one[0].labels
        (first, mine), (second, theirs) = (other, one) if turn else (one, other)
        ask = column if at is None else KeyColumn.of("hash", mine[at])
        if on.index != "hash":
            return Order(first, ask, None, second, None)
        return Order(first, ask, KeyColumn.of("hash", mine[at or 0]), second, KeyColumn.of("hash", theirs[at or 0]))

    def position(self, column: KeyColumn | None) -> int | None:
        """Find the index of a column among the join's equality keys, or None unless both sides have it."""
        if column is None or column.index != "hash" or self.join.on.index != "hash":
            return None
        for key in (self.join.on.left_key, self.join.on.right_key):
            columns = [KeyColumn.of("hash", e) for e in key]
            if column in columns:
                return columns.index(column)
        return None

    def columns(self) -> Iterator[KeyColumn]:
        """List every column by which a state of these joins may be completed."""
        for fork in self.forks():
            for key in (*fork.join.on.left_key, *fork.join.on.right_key):
                yield KeyColumn.of(fork.join.on.index, key)
        for label in sorted(self.join.labels):
            yield KeyColumn("scan", label)
