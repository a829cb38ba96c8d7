"""A unit in one step on one lane: its own part of the step, phase by phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from midstream.migration.strategy_contract import strategy
from midstream.migration.under_way.running import recovered
from midstream.model.ids import OperatorId, StateId
from midstream.model.manifest import LaneState
from midstream.model.window import EVENT_TIME, Clock
from midstream.operators.ensure import ensure, states_of
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.dead_letters import together
from midstream.runtime.dirty_set import RestingStates
from midstream.runtime.lane import Lane
from midstream.runtime.piece_writer import AgeRuns, PieceWriter, Pour
from midstream.runtime.result_operator import Answer
from midstream.runtime.watermark import BEGINNING
from midstream.state.combinations import Combinations
from midstream.state.specs import RowsSpec, StateSpec
from midstream.units.draft import MigrationStart
from midstream.units.held import hold_back, released
from midstream.units.unit import Requirements, Unit


@dataclass
class Poured:
    """What of a unit's answers has gone to the writer in this step; dead letters are kept, for they have no order."""

    unit: Unit
    lane: Lane
    writer: PieceWriter
    _rows: dict[str, int] = field(default_factory=dict)
    _dead: dict[str, pa.Table] = field(default_factory=dict)

    def take(self, found: Combinations, age_runs: AgeRuns) -> None:
        """Write the answer to a piece of the root's output."""
        self._put(self.unit.answer(self.lane, (found,), age_runs))

    def rest(self, deltas: Sequence[Combinations], age_runs: AgeRuns) -> dict[str, Answer]:
        """Return the answers of the step, except what has gone to the writer, which is counted in them.

        Many rows of what the root gives back go to the writer in parts first.
        """
        parts = self.unit.parts(self.lane, deltas, age_runs, self.writer.sizes.evaluated)
        found = next(parts)
        for part in parts:
            self._put(found)
            found = part
        if self._rows:  # All that comes after pieces is a piece itself, or their order would not show.
            self._put(found)
            found = {query: Answer(one.table.slice(0, 0), one.times[:0]) for query, one in found.items()}
        return self._beside(found)

    def _put(self, answers: Mapping[str, Answer]) -> None:
        for query, answer in answers.items():
            if answer.dead is not None:
                self._dead[query] = together(self._dead.get(query), answer.dead)
            if answer.count:
                self._rows[query] = self._rows.get(query, 0) + answer.count
                self.writer.put(query, answer.table)

    def _beside(self, answers: Mapping[str, Answer]) -> dict[str, Answer]:
        return {
            query: replace(one, dead=together(self._dead.get(query), one.dead), poured=self._rows.get(query, 0))
            for query, one in answers.items()
        }


def mark_of(unit: str, step: int, number: int) -> str:
    """Name a migration uniquely: by its unit, step and number. Units never share states in transition.

    >>> mark_of("q", 12, 0)
    'q.12.0'
    """
    return f"{unit}.{step}.{number}"


class UnitStep:
    """Restores a unit's box, begins its migrations, sees to its states, advances, answers and settles.

    `lane_step` calls the methods in the order in which they stand here, each for all units before the next one, for
    units share base rows and states: all that one may read must be bound, computed or advanced for all.
    """

    def __init__(self, unit: Unit, migrations: Sequence[MigrationStart], state: LaneState, lane: Lane) -> None:
        self.unit, self.lane = unit, lane
        self._migrations = [(migration, unit.box(migration.plan)) for migration in migrations]
        self._costs: dict[str, int] = {}
        self._deltas: tuple[Combinations, ...] = ()
        self._poured: Poured | None = None
        self.box = self._restored(state)
        self._ran: list[Box] = [self.box, self.box.target, *(box for _, box in self._migrations)]

    def _restored(self, state: LaneState) -> Box:
        unit = self.unit
        snapshot = state.boxes.get(unit.name) or (state.boxes.get(unit.formerly) if unit.formerly else None)
        # A snapshot may be of a query of the same name that this step dropped.
        if snapshot is None or unit.since == self.lane.clock.step:
            return unit.box(unit.plan)
        return unit.restored(snapshot)

    def open(self) -> None:
        """Let the unit make inputs of its own."""
        self.unit.open(self.lane)

    def bounds(self) -> dict[Clock, int]:
        """Compute for each clock of the unit the least end of lifetime that still matters to it."""
        unit, lane = self.unit, self.lane
        before = min([lane.clock.before[stream] for stream in unit.streams])
        # A row outside every window and filter has ended before all time, and is dead before the watermark has moved.
        found = {EVENT_TIME: max(before - unit.slack, BEGINNING + 1)}
        for stream in unit.counted:
            found[Clock(stream)] = lane.arrived_before(unit.binding.inputs[stream])
        return found

    def specs(self) -> list[StateSpec | RowsSpec]:
        """List the states, base rows included, that the unit may read in this step."""
        return [spec for box in self._ran for spec in self.unit.requirements(box).specs]

    def resting(self) -> RestingStates | None:
        """Return what of the unit may rest; nothing while a migration is under way."""
        return self.unit.requirements(self.box).resting if isinstance(self.box, PlanBox) else None

    def recover(self) -> None:
        """Go on with the plan itself where a state is lost that only a migration under way could compute."""
        self.box = recovered(self.box, self.lane)

    def begin(self) -> None:
        """Begin the requested migrations, each from what runs after the one before."""
        for number, (migration, target) in enumerate(self._migrations):
            before, mark = self.lane.comparisons, mark_of(self.unit.name, self.lane.clock.step, number)
            chosen = strategy(migration.strategy)
            if self.unit.migrates:
                self.box = chosen.begin(self.box, target, self.lane, migration.options, mark)
            else:
                self.box = target
            self.unit.hand_over(migration, chosen, self.box.results, mark, self.lane)
            self._ran.append(self.box)
            self._costs[mark] = self.lane.comparisons - before

    def ensure(self, *, changed: bool) -> None:
        """Ensure that every state that the unit needs is there.

        One that is computed again emits an event, unless this step needs new states anyway (`changed`).
        """
        resting = self.resting() if self.lane.dirty.rests else None
        if resting is not None and not self.lane.unread(resting.specs):
            return
        kept = zip(self.box.results, self.unit.kept, strict=False)
        quiet = changed or bool(self._migrations)
        ensure(self.lane, [*states_of(self.box.operators()), *kept], event=not quiet)

    @property
    def counted(self) -> tuple[OperatorId, ...]:
        """The ids of the counters of what it runs, its root's among them."""
        return self.unit.requirements(self.box).counted

    def pour_into(self, writer: PieceWriter, shared: Set[OperatorId]) -> None:
        """Let the unit's answers go out in pieces, where its root can make them so and nothing else reads the root.

        `shared` are the roots that others read.
        """
        unit, box = self.unit, self.box
        if self._migrations or not isinstance(box, PlanBox) or len(box.roots) != 1 or not unit.pours:
            return
        if not writer.queries >= set(unit.queries) or box.roots[0].id in shared:
            return
        if not any(self.lane.lists(table) for table in unit.held_tables.values()):
            self._poured = Poured(unit, self.lane, writer)
            self.lane.pours[box.roots[0].id] = Pour(self._poured.take, writer.sizes.joined)

    def advance(self) -> None:
        """Compute the step's deltas."""
        self._deltas = self.box.advance(self.lane)

    def answer(self) -> dict[str, Answer]:
        """Return the step's part of each query's answer: without what is held back, with what is held back no
        longer."""
        unit, lane = self.unit, self.lane
        age_runs = lane.noted(self.box.roots[0].id, ()) if isinstance(self.box, PlanBox) else ()
        if self._poured is not None:
            found = self._poured.rest(self._deltas, age_runs)
        else:
            found = unit.answer(lane, self._deltas, age_runs)
        withheld = self.box.withheld(lane)
        rejected = unit.rejected_rows(lane)
        if withheld is not None:
            for query, answer in unit.answer(lane, (withheld,)).items():
                hold_back(lane, unit.held_tables[query], answer)
                if answer.dead is not None:  # Dead letters have no order, so nothing holds them back.
                    rejected[query] = together(rejected.get(query), answer.dead)
        elif any(lane.lists(table) for table in unit.held_tables.values()):
            found = {query: released(lane, unit.held_tables[query], answer) for query, answer in found.items()}
        if not rejected:
            return found
        return {query: replace(a, dead=together(rejected.get(query), a.dead)) for query, a in found.items()}

    def settle(self) -> UnitOutcome:
        """End the step, and return what the unit goes on with, and what must be listed for that."""
        tables = set(self.unit.tables(self.lane))
        if self.box.withheld(self.lane) is not None:
            tables |= set(self.unit.held_tables.values())
        migrations, after = self._reports(), self.box.settled(self.lane)
        ran = {id(box): self.unit.requirements(box) for box in (*self._ran, after)}
        needed = tables | ran[id(after)].states
        return UnitOutcome(self.unit, after, tuple(ran.values()), needed, migrations)

    def _reports(self) -> dict[str, dict[str, Any]]:
        # Those included that began and ended in this step.
        found: dict[str, dict[str, Any]] = {mark: {"comparisons": cost} for mark, cost in self._costs.items()}
        for mark, report in self.box.reports(self.lane).items():
            cost = found.get(mark, {"comparisons": 0})["comparisons"] + report["comparisons"]
            found[mark] = {**report, "comparisons": cost}
        for mark, report in self.unit.reports(self.lane).items():
            before: dict[str, Any] = found.get(mark, {"comparisons": 0})
            pieces = {**before.get("pieces", {}), **report["pieces"]}
            cost = before["comparisons"] + report["comparisons"]
            found[mark] = {**before, **report, "comparisons": cost, "pieces": pieces}
        return found


class UnitOutcome:
    """A unit after a step: the box it goes on with, the ids that must be listed, what its migrations did."""

    def __init__(
        self,
        unit: Unit,
        box: Box,
        ran: Sequence[Requirements],
        needed: set[StateId],
        migrations: Mapping[str, dict[str, Any]],
    ) -> None:
        self.unit, self.box, self.needed, self.migrations = unit, box, needed, migrations
        self._ran = ran

    def operators(self) -> tuple[OperatorId, ...]:
        """Return the ids of all counters that belong to the unit, sorted."""
        if len(self._ran) == 1:
            return self._ran[0].counted
        return tuple(sorted({id for one in self._ran for id in one.counted}))
