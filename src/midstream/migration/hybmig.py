"""HybMig (HybMig §3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration.hybrid.background import Background
from midstream.migration.hybrid.characteristics import CharacteristicsTable, Entry
from midstream.migration.option import BACKGROUND, DECOMPOSE
from midstream.migration.predictions import shifting
from midstream.migration.strategy_contract import MigrationRequest
from midstream.migration.under_way.lasting import Lasting
from midstream.migration.under_way.migration_task import BegunTask
from midstream.migration.under_way.transition import Transition, inner
from midstream.model.codec import decode, encode
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.decompose import Sources
from midstream.plan.signature import ViewKind, ViewName
from midstream.plan.tree import Leaf, joins
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator, View
from midstream.state.combinations import Combinations, concatenate
from midstream.state.join_state import JoinState
from midstream.state.specs import StateSpec

ENTRIES = 62
"""Entries of a table at most: a combination's bitmap is one word."""


class HybMig(Lasting):
    """Share the base states; the new plan takes over at once, the old one serves what it cannot make (§3.2-3.3).

    A right-deep new plan has one lowest join and its table one entry: two inputs are disconnected from the old plan
    (Fig. 7); any other plan has an entry for each lowest join (Fig. 9, Table 2). `background` is a budget, in
    comparisons a step, for completing missing states (§3.4): newest rows first, and every state that is complete
    relieves the old plan at once.

    Differences from the paper: a step's results are put in order of their latest component together, which serves as
    both order-preserving forms (Fig. 10); bitmaps follow from the row numbers a combination carries anyway; an entry
    goes as soon as the old rows of one of its sources are spent, which may be before all are.
    """

    name: ClassVar[str] = "hybmig"
    options = (DECOMPOSE, BACKGROUND)

    @override
    def refusal(self, move: MigrationRequest) -> str | None:
        pairs = sum(isinstance(j.left, Leaf) and isinstance(j.right, Leaf) for j in joins(move.new))
        if pairs > ENTRIES:
            return f"the new plan has {pairs} lowest joins, and the characteristics table {ENTRIES} entries at most"
        return None

    @override
    def transition(
        self, name: str, task: BegunTask, old: Operator | None, whole: Operator, options: Mapping[str, Any]
    ) -> Transition:
        assert old is not None
        masked = task.memory.get("masked")
        joins = inner(old, task.units) | {old.labels} if masked is None else frozenset(map(frozenset, masked))
        states = inner(whole, task.units)
        return HybMigTransition(
            whole.signature,
            whole.rows,
            name,
            task,
            old.in_view(View(ViewName(name, ViewKind.OLD), joins, joins - {old.labels}))
            if _is_plain(old, joins)
            else old,
            whole.in_view(View(ViewName(name, ViewKind.NEW), states | {whole.labels}, states)),
            whole,
            options,
            joins,
        )

    @override
    def predict(self, situation: Situation) -> Prediction:
        return shifting(situation, BACKGROUND.of(situation.options))


def _is_plain(old: Operator, masked: frozenset[Sources]) -> bool:
    return old.labels in masked and not isinstance(old, Transition)


@dataclass(frozen=True)
class HybMigTransition(Transition):
    """The new plan over empty intermediate states; the old plan's `masked` joins leave out what the new plan makes."""

    masked: frozenset[Sources]

    @cached_property
    def table(self) -> CharacteristicsTable:
        """The characteristics table as the step finds it."""
        if "table" in self.task.memory:
            return CharacteristicsTable(tuple(decode(Entry, entry) for entry in self.task.memory["table"]))
        return CharacteristicsTable.of(self.whole, self.task)

    @override
    def enter(self, lane: Lane) -> None:
        assert self.old is not None
        for op in self.old.walk():
            for _, spec in op.states():
                if spec.signature.is_within(ViewName(self.name, ViewKind.OLD)):
                    lane.share(replace(spec, signature=spec.signature.whole()), spec)
        for op in self.new.walk():
            for _, spec in op.states():
                if spec.signature.is_within(ViewName(self.name, ViewKind.NEW)):
                    lane.put(JoinState(spec, []))

    @cached_property
    def background(self) -> Background | None:
        """The background work that fills the missing states; None without a budget."""
        return (
            Background(self.id, self.new, ViewName(self.name, ViewKind.BACKGROUND))
            if BACKGROUND.of(self.options)
            else None
        )

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        if self.background is None or self.task.memory.get("cursor") is None:
            return ()
        entry = self.background.next(self.table)
        return () if entry is None else (self.background.gathering(entry),)

    @override
    def is_idle(self) -> bool:
        return not self.table.entries

    @override
    def advance(self, lane: Lane) -> Combinations:
        assert self.old is not None
        table, cursor = self.table, self.task.memory.get("cursor")
        if self.background is not None:
            table, cursor = self.background.work(lane, table, cursor, self.options["background"])
        lane.note(self.id, (table, cursor))
        late = table.serve(self.old, lane, self.masked)
        results = self.new.delta(lane)
        return concatenate(
            [results, Combinations({s: late.refs[s] for s in results.refs}, late.valid_from, late.valid_to)]
        )

    @override
    def is_over(self, lane: Lane) -> bool:
        return not self._left(lane).entries

    @override
    def remembered(self, lane: Lane) -> BegunTask:
        masked, left = sorted(sorted(sources) for sources in self.masked), self._left(lane)
        table, cursor = lane.noted(self.id)
        if self.background and self.background.next(left) != self.background.next(table):
            cursor = None  # The entry that was worked on is void by now.
        return replace(
            self.task, memory={"masked": masked, "table": [encode(entry) for entry in left.entries], "cursor": cursor}
        )

    def _left(self, lane: Lane) -> CharacteristicsTable:
        table, _ = lane.noted(self.id)
        return CharacteristicsTable(tuple(e for e in table.entries if not self._is_void(e, lane)))

    def _is_void(self, entry: Entry, lane: Lane) -> bool:
        return any(
            bound == self.task.start[label] and self.task.source_is_spent(label, lane, self)
            for label, bound in entry.old.items()
        )

    @override
    def phase(self, lane: Lane) -> str:
        filled = ", which is filled in the background" if self.background else ""
        return f"the old plan serves what the new one lacks{filled}"

    @override
    def serves(self) -> tuple[str, str]:
        entries = [f"{'+'.join(sorted(entry.old))} all old" for entry in self.table.entries]
        gone = sorted(self.table.disconnected())
        without = f"; disconnected from new rows of {', '.join(gone)}" if gone else ""
        return f"results with {' or '.join(entries)}{without}", "all other results"
