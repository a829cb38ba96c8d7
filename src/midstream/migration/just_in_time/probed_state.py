"""The states of a plan as they are completed: what each is made of, and in which order (JISC §4, Procedures 2-3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from midstream.language.expression import Expression
from midstream.model.ids import StateId, StateKind
from midstream.operators.window_join import WindowJoin
from midstream.plan.decompose import Sources
from midstream.runtime.operator import Operator
from midstream.state.specs import StateSpec


@dataclass(frozen=True)
class ProbedState:
    """A state that a join probes, and the join that fills it; a unit's state is complete and has none below."""

    spec: StateSpec
    operator: Operator
    below: Fork | None

    @property
    def labels(self) -> Sources:
        """The sources combined."""
        return self.operator.labels

    @property
    def name(self) -> str:
        """Tells it apart from the other states of its plan, and of the plan's mirror image."""
        return self.spec.signature.digest()

    @property
    def primary(self) -> Expression | None:
        """The column by whose keys it is probed; None where it is not probed by equality.

        Of several key columns the first one stands for all: what has its key includes what has all of them.
        """
        return self.spec.key[0] if self.spec.index == "hash" else None

    @property
    def table(self) -> StateId:
        """The id of the table of its attempts."""
        return StateId(f"{self.spec.id.owner}.{self.spec.id.content}", self.spec.id.part, StateKind.TABLE.value)

    @property
    def counted(self) -> str | None:
        """The name of the column whose keys say whether it is complete."""
        return None if self.primary is None else self.primary.text()

    def is_sorted_by(self, column: Expression) -> bool:
        """Whether its codes are those of the column."""
        return self.spec.index == "hash" and [e.text() for e in self.spec.key] == [column.text()]


@dataclass(frozen=True)
class Order:
    """In which order the sides of a join are completed: `first` for the keys of `ask`, then `second`.

    The second is completed for those keys of its column `other` that the first one's combinations have in their column
    `link`; as a whole where the join knows no keys.
    """

    first: ProbedState
    ask: Expression | None
    link: Expression | None
    second: ProbedState
    other: Expression | None


@dataclass(frozen=True)
class Fork:
    """A join and the two states it probes."""

    join: WindowJoin
    left: ProbedState
    right: ProbedState

    @staticmethod
    def of(join: WindowJoin, units: frozenset[Sources]) -> Fork:
        """The joins from this one down to the units."""

        def probed(spec: StateSpec, operator: Operator) -> ProbedState:
            if isinstance(operator, WindowJoin) and operator.labels not in units:
                return ProbedState(spec, operator, Fork.of(operator, units))
            return ProbedState(spec, operator, None)

        return Fork(join, probed(join.left_state, join.left), probed(join.right_state, join.right))

    def forks(self) -> Iterator[Fork]:
        """This one and those below, children first."""
        for side in (self.left, self.right):
            if side.below is not None:
                yield from side.below.forks()
        yield self

    def probed_states(self) -> Iterator[ProbedState]:
        """The states below that can be incomplete, deepest first."""
        for fork in self.forks():
            yield from (side for side in (fork.left, fork.right) if side.below is not None)

    def probes(self) -> tuple[tuple[ProbedState, ProbedState, Expression | None], ...]:
        """Each state, the other side whose new rows probe it, and the column of theirs that has the key."""
        on = self.join.on
        hashed = on.index == "hash"
        return (
            (self.left, self.right, on.right_key[0] if hashed else None),
            (self.right, self.left, on.left_key[0] if hashed else None),
        )

    def order(self, column: Expression | None) -> Order:
        """How to find the combinations that have certain keys in a column, or all of them.

        The side that owns the column comes first; where both do, or all are needed, a unit: it lacks nothing.
        """
        on, at = self.join.on, self.position(column)
        one, other = (self.left, on.left_key), (self.right, on.right_key)
        if at is not None or column is None:
            turn = one[0].below is not None and other[0].below is None
        else:
            turn = not column.aliases() <= one[0].labels
        (first, mine), (second, theirs) = (other, one) if turn else (one, other)
        ask = column if at is None else mine[at]
        if on.index != "hash":
            return Order(first, ask, None, second, None)
        return Order(first, ask, mine[at or 0], second, theirs[at or 0])

    def position(self, column: Expression | None) -> int | None:
        """Where among the keys of the join a column stands, if both sides have it."""
        if column is None or self.join.on.index != "hash":
            return None
        for key in (self.join.on.left_key, self.join.on.right_key):
            texts = [e.text() for e in key]
            if column.text() in texts:
                return texts.index(column.text())
        return None
