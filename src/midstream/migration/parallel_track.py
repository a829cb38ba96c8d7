"""Parallel track (Zhu §4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from midstream.migration.gpt import begin_empty
from midstream.migration.option import DECOMPOSE, Flag, OneOf
from midstream.migration.predictions import both_plans
from midstream.migration.strategy_contract import MigrationRequest
from midstream.migration.under_way.lasting import LastingApart
from midstream.migration.under_way.migration_task import BegunTask
from midstream.migration.under_way.transition import Transition, inner, joins_above, restricted
from midstream.model.window import EVENT_TIME
from midstream.operators.match import keyed
from midstream.operators.window_join import WindowJoin
from midstream.optimizer.prediction import Prediction, Situation
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations, Words, concatenate

HOLD_NEW = Flag("hold_new", False, "keep the new plan's results back until the old plan is done (Zhu §4.2)")
PURGE = OneOf("purge", "watermark", "when old rows go: by the watermark, or by Zhu's rule", ("watermark", "zhu"))


@dataclass(frozen=True)
class ParallelTransition(Transition):
    """The old plan without all-new results, and the new plan over new rows only."""

    @override
    def enter(self, lane: Lane) -> None:
        begin_empty(self, lane)

    @override
    def advance(self, lane: Lane) -> Combinations:
        late = self._late(lane)
        if self._by_lemma:
            lane.note(self.id, self._purged(lane))
        results = self.new.delta(lane)
        late = Combinations({s: late.refs[s] for s in results.refs}, late.valid_from, late.valid_to)
        if self.is_held(lane):
            return late
        return concatenate([late, results])

    @override
    def withheld(self, lane: Lane) -> Combinations | None:
        return self.new.delta(lane) if self.is_held(lane) else None

    def is_held(self, lane: Lane) -> bool:
        """Return whether this step keeps new results back."""
        return HOLD_NEW.of(self.options) and not self.is_over(lane)

    @override
    def is_over(self, lane: Lane) -> bool:
        if not self.task.is_spent(lane, self):
            return False
        if not self._by_lemma or self.task.is_spent(lane, self, self._window):
            return True
        return lane.noted(self.id) is not None and all(old is None for old, _ in lane.noted(self.id).values())

    @override
    def remembered(self, lane: Lane) -> BegunTask:
        noted = lane.noted(self.id)
        return self.task if noted is None else replace(self.task, memory={"purging": noted})

    @override
    def phase(self, lane: Lane) -> str:
        return "both plans run" + (", new results are held back" if HOLD_NEW.of(self.options) else "")

    @override
    def serves(self) -> tuple[str, str]:
        return "results with an old row", "results of new rows only"

    @property
    def _by_lemma(self) -> bool:
        # In an old plan of one join no mixed tuple can outlive its old rows.
        return PURGE.of(self.options) == "zhu" and (
            not isinstance(self.old, WindowJoin) or bool(inner(self.old, self.task.units))
        )

    @property
    def _window(self) -> int:
        # In microseconds.
        windows = [spec.window for spec in self.rows.values() if spec.label in self.labels and spec.window]
        return max((window.size for window in windows if window.kind == "range"), default=0)

    def _purged(self, lane: Lane) -> dict[str, list[int | None]]:
        """Apply Lemma 2.2 to every state of the old plan, after the step's rows (Zhu §2.4).

        Returns: by state the greatest time of an old tuple that is left, None if there is none, and the greatest of
        the least times of tuples that have come to the other input; in microseconds of event time.
        """
        assert self.old is not None
        if not isinstance(self.old, WindowJoin):
            return {"": [0, None]}  # No lemma says when it is empty.
        window, first = self._window, "purging" not in self.task.memory
        memory = self.task.memory.get("purging", {})
        found: dict[str, list[int | None]] = {}
        for join in joins_above(self.old, self.task.units):
            sides = ((join.left_state, join.left, join.right), (join.right_state, join.right, join.left))
            for spec, own, other in sides:
                # A change of windows gives states other ids, but not other sources.
                name = f"{'+'.join(sorted(own.labels))} in {'+'.join(sorted(join.labels))}"
                greatest, least = memory.get(name, (None, None))
                pieces = [own.delta(lane), *([run.combinations for run in lane.join(spec).old] if first else [])]
                for piece in pieces:
                    greatest = _latest(greatest, piece.valid_from[EVENT_TIME][self._all_new(piece) == 0])
                # A combination ends with the window of its oldest row; windows of their own may only end it sooner.
                least = _latest(least, other.delta(lane).valid_to[EVENT_TIME] - window)
                purged = greatest is not None and least is not None and least - greatest > window
                found[name] = [None if purged else greatest, least]
        return found

    def _late(self, lane: Lane) -> Combinations:
        # The root of the old plan joins no two all-new combinations (Zhu §4.2.1).
        old = self.old
        assert old is not None
        if not isinstance(old, WindowJoin) or lane.has_delta(old.id):
            found = old.drive(lane)
            return found.take(self._all_new(found) == 0)
        left, right = old.left.drive(lane), old.right.drive(lane)
        found = restricted(lane, old, (left, right), (self._all_new, lambda c: 2 * self._all_new(c)), full=3)
        for spec, key, delta in (
            (old.left_state, old.on.left_key, left),
            (old.right_state, old.on.right_key, right),
        ):
            lane.join(spec).insert(keyed(lane, old.rows, delta, old.on.index, key))
        return found

    def _all_new(self, combinations: Combinations) -> Words:
        # Of a subplan that both plans share, what was made before the start is old.
        new = np.ones(len(combinations), np.bool_)
        for unit in self.task.units:
            fresh = [combinations.refs[label] >= self.task.start[label] for label in unit & combinations.refs.keys()]
            new &= np.logical_or.reduce(fresh) if fresh else True
        return new.astype(np.int64)


class ParallelTrack(LastingApart):
    """Run both plans until the old one has only new tuples; its root makes no all-new result, the new plan makes those.

    `hold_new` keeps the new plan's results back until the old plan is done, as in the paper, and releases them in one
    burst; without it they go out at once, which the max ordering of HybMig §2.1 allows. `purge="watermark"` ends as
    soon as no old row can be joined any more: W under max ordering (HybMig §3.5). `purge="zhu"` ends when Lemma 2.2 has
    purged the last old tuple from every state of the old plan: a tuple of the other input purges it once the least of
    its times is more than W after the greatest of the old tuple's. That is at most 2W, when Equation 4 ends it in any
    case: streams that fall silent purge nothing.

    Differences from the paper: payload is stored once for both plans; results held back have left the plan already and
    wait as rows of the answer. The engine itself purges by watermark; the lemma decides when the old plan goes. It is
    read at the end of a step, with the widest window for W. Where the old plan is itself a migration under way its
    states are not joins' states, and the 2W are waited for.
    """

    made = ParallelTransition
    name: ClassVar[str] = "parallel_track"
    options = (DECOMPOSE, HOLD_NEW, PURGE)

    @override
    def refusal(self, move: MigrationRequest) -> str | None:
        if PURGE.of(move.options) == "zhu" and not move.timed:
            return 'purge="zhu" compares times (Lemma 2.2), but a window of the query counts rows; leave it out'
        if HOLD_NEW.of(move.options) and not move.plain:
            return (
                "hold_new keeps rows of the answer back, but an aggregate, a difference or an operator on top "
                "must know all of them in time"
            )
        return None

    @override
    def is_whole(self, options: Mapping[str, Any]) -> bool:
        # What is held back must be the answer itself: inside a plan its partners would be purged meanwhile.
        return HOLD_NEW.of(options) or super().is_whole(options)

    @override
    def nested(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**options, HOLD_NEW.name: False} if HOLD_NEW.of(options) else options

    @override
    def predict(self, situation: Situation) -> Prediction:
        return both_plans(
            situation,
            hold_new=HOLD_NEW.of(situation.options),
            zhu_purge=PURGE.of(situation.options) == "zhu",
        )


def _latest(known: int | None, times: Words) -> int | None:
    if not len(times):
        return known
    return int(times.max()) if known is None else max(known, int(times.max()))
