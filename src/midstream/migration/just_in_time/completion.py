"""States completed just in time (JISC §4, Procedures 1-3), for all keys of a step at once.

The rule: before a new row probes a state, the state is complete for every key that the row can meet: the key itself for
an equality, the codes within the row's range for a band, and for any other condition the rows of a source that satisfy
it. Completing adds exactly the combinations of old rows with that key; those with a new row are there, because their
probes obeyed the rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from midstream.migration.just_in_time.attempts import Attempts
from midstream.migration.just_in_time.distinct_keys import KeyColumn, Keys, among, united
from midstream.migration.just_in_time.probed_state import Fork, Probe, ProbedState
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId, StateId
from midstream.operators.candidates import band_ranges, equal_pairs
from midstream.operators.join_condition import JoinCondition
from midstream.operators.match import count_candidates, keyed, match
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations, concatenate, indices
from midstream.state.keys import Codes
from midstream.state.sorted_run import SortedRun

GROWTH = 4
"""A batch of keys is at most so many times the one before, because what a key costs is known only afterwards."""

FINDING = 4
"""To find the rows that a condition asks for may cost one in so many of the comparisons that complete all of them."""


class Completion:
    """The completions of one step on one lane.

    `attempts` has an entry for each state that may be incomplete, by id; what is compared counts on behalf of
    `operator`. `start` has the row numbers below which a row was old when the migration began; a state may have its
    own, older one. `made` counts by state the combinations that were added.
    """

    def __init__(
        self, lane: Lane, operator: OperatorId, root: Fork, start: Mapping[str, int], attempts: dict[StateId, Attempts]
    ) -> None:
        self.lane, self.operator, self.start, self.attempts = lane, operator, start, attempts
        self.rows = root.join.rows
        self.columns = {column.name: column for column in root.columns()}
        self.made: dict[str, int] = {}
        self._known: dict[tuple[str, str], Keys] = {}

    def is_complete(self, probed: ProbedState) -> bool:
        """Return whether a state lacks nothing: no key by which it can be probed is left."""
        if probed.below is None or probed.spec.id not in self.attempts:
            return True
        if probed.primary is not None and not self.attempts[probed.spec.id].whole:
            self.left(probed, probed.primary)
        return self.attempts[probed.spec.id].counter(probed.counted) == 0

    def left(self, probed: ProbedState, column: KeyColumn) -> Keys:
        """Return the keys of a column not yet attempted: at first those of all old rows that may have partners."""
        here = self.attempts[probed.spec.id]
        if column.name not in here.left:
            keys = self._keys(probed, column, self._start(probed))
            self.attempts[probed.spec.id] = Attempts(here.start, {**here.left, column.name: keys}, here.whole)
            if keys.nulls and column.name == probed.counted:
                # Combinations without a key are never completed: the state will not serve under another index.
                self.lane.join(probed.spec).never_whole()
            return keys
        return here.left[column.name]

    def fresh(self, probed: ProbedState, column: KeyColumn, codes: Codes) -> Codes:
        """Select from ascending codes those for which a state must be completed.

        The paper asks whether a key was met by a stream since the migration began (Definition 2), or is present in the
        state (Procedure 1, line 1). Both lose results: a row that meets complete states only leaves its key in the
        incomplete state above, where nothing was attempted for it. So attempts are kept for each state.
        """
        return codes[among(codes, self.left(probed, column).codes)]

    def complete(self, probed: ProbedState, column: KeyColumn, codes: Codes) -> None:
        """Complete a state for some ascending codes of a column."""
        if self.is_complete(probed):
            return
        codes = self.fresh(probed, column, codes)
        if len(codes):
            self._insert(probed, column, self._missing(probed, column, codes))
            self.attempts[probed.spec.id] = self.attempts[probed.spec.id].attempted(column.name, codes)

    def complete_all(self, probed: ProbedState) -> None:
        """Complete a state for every key: where no key says what a probe will find."""
        if not self.is_complete(probed):
            self._insert(probed, None, self._missing(probed, None, None))
            self.attempts[probed.spec.id] = Attempts(self.attempts[probed.spec.id].start, whole=True)

    def complete_for(self, probe: Probe, arrived: Combinations) -> None:
        """Complete a state for all that some combinations of the other side can meet in it."""
        probed = probe.state
        if not len(arrived) or self.is_complete(probed):
            return
        if probed.primary is None:
            self.complete_all(probed)
        else:
            self.complete(probed, probed.primary, self.reached(probe, arrived))

    def reached(self, probe: Probe, arrived: Combinations) -> Codes:
        """Find the codes of a state's primary column that the other side's combinations can meet, ascending.

        For a band and for other conditions these are keys that are left. A band's are searched, which is not a
        comparison; the rows that other conditions find are compared, each with each.
        """
        probed, key = probe.state, probe.key
        assert probed.primary is not None
        if probed.primary.index == "hash":
            assert key is not None
            return self.distinct(arrived, key)
        left = self.left(probed, probed.primary).codes
        if not len(left) or not len(arrived):
            return left[:0]
        if probed.primary.index == "scan":
            return self._satisfying(probed, arrived, left)
        assert key is not None
        on, codes = probe.fork.join.on, self.distinct(arrived, key)
        one, other = (left, codes) if probe.is_left else (codes, left)
        met = np.zeros(len(left), np.bool_)
        for found in band_ranges(one, other, on.low, on.high):
            if probe.is_left:
                met |= found.end > found.start
            else:
                some = found.end > found.start
                change = np.zeros(len(left) + 1, np.int64)
                np.add.at(change, found.start[some], 1)
                np.add.at(change, found.end[some], -1)
                met |= change.cumsum()[:-1] > 0
        return left[met]

    def _satisfying(self, probed: ProbedState, arrived: Combinations, left: Codes) -> Codes:
        # Returns all rows that are left where finding out would cost a good part of what it may save.
        assert probed.primary is not None
        unit = probed
        while unit.below is not None:
            unit = unit.below.order(probed.primary).first
        rows = self._take(unit, probed.primary, left, self._start(probed))
        share = len(left) / max(self.lane.join(unit.spec).live, 1)
        if len(arrived) * len(rows) * FINDING > _pairs(self, probed) * share:
            return left
        on = JoinCondition("scan", (), (), None, None, (), probed.conditions)
        met = match(self.lane, self.rows, self.operator, on, SortedRun(None, arrived), SortedRun(None, rows))
        codes: Codes = np.unique(met.refs[probed.primary.source])
        return codes

    def codes(self, combinations: Combinations, column: KeyColumn) -> tuple[Codes, npt.NDArray[np.bool_] | None]:
        """Compute the code of each combination in a column, and a mask of those that have one (None: all have)."""
        return column.codes(self.lane, self.rows, combinations)

    def distinct(self, combinations: Combinations, column: KeyColumn) -> Codes:
        """List the distinct codes of a column, ascending."""
        if not len(combinations):
            return np.zeros(0, np.int64)
        codes, valid = self.codes(combinations, column)
        return cast(Codes, np.unique(codes if valid is None else codes[valid]))

    def _start(self, probed: ProbedState) -> Mapping[str, int]:
        own = self.attempts[probed.spec.id].start
        return self.start if own is None else own

    def _missing(self, probed: ProbedState, column: KeyColumn | None, codes: Codes | None) -> Combinations:
        assert probed.below is not None
        start, fork = self._start(probed), probed.below
        join, order = fork.join, fork.order(column)
        # A state below may be older than this one: it is read up to this one's start.
        self._ask(order.first, order.ask, codes)
        one = self._take(order.first, order.ask, codes, start)
        if not len(one):
            return probed.spec.heading.nothing
        if order.link is None and codes is not None:
            self.complete_for(next(p for p in fork.probes() if p.state is order.second), one)
            other = self._take(order.second, None, None, start)
        else:
            links = None if order.link is None else self.distinct(one, order.link)
            self._ask(order.second, order.other, links)
            other = self._take(order.second, order.other, links, start)
        left, right = (one, other) if order.first is fork.left else (other, one)
        on = join.on
        found = match(
            self.lane,
            self.rows,
            self.operator,
            on,
            keyed(self.lane, self.rows, left, on.index, on.left_key),
            keyed(self.lane, self.rows, right, on.index, on.right_key),
        )
        return join.needed(self.lane, found)

    def _ask(self, probed: ProbedState, column: KeyColumn | None, codes: Codes | None) -> None:
        if column is None or codes is None:
            self.complete_all(probed)
        else:
            self.complete(probed, column, codes)

    def _take(
        self, probed: ProbedState, column: KeyColumn | None, codes: Codes | None, start: Mapping[str, int]
    ) -> Combinations:
        found = []
        for part in self.lane.join(probed.spec).old:
            here = part.combinations
            if column is not None and codes is not None:
                if probed.is_sorted_by(column) and part.codes is not None:
                    at = [b for _, b in equal_pairs(codes, part.codes)]
                    here = here.take(np.concatenate([np.zeros(0, np.int64), *at]))
                elif len(here):
                    own, valid = self.codes(here, column)
                    found_here = among(own, codes)
                    here = here.take(found_here if valid is None else found_here & valid)
            here = _before(here, start)
            if len(here):
                found.append(here)
        return concatenate(found) if found else probed.spec.heading.nothing

    def _insert(self, probed: ProbedState, column: KeyColumn | None, found: Combinations) -> None:
        # Leaves out what is in the state already because of another column.
        for text, keys in self.attempts[probed.spec.id].left.items():
            if len(found) and (column is None or text != column.name):
                codes, valid = self.codes(found, self.columns[text])
                absent = among(codes, keys.codes)
                found = found.take(absent if valid is None else absent | ~valid)
        state, spec = self.lane.join(probed.spec), probed.spec
        part = keyed(self.lane, self.rows, found, spec.index, spec.key)
        state.complete(part)
        if len(part):
            self.made[spec.id] = self.made.get(spec.id, 0) + len(part)
            self.lane.count(spec.id.counted, Counters(inserted=len(part)))

    def _keys(self, probed: ProbedState, column: KeyColumn, start: Mapping[str, int]) -> Keys:
        # These are the paper's counters (§4.3), which take the smaller side instead of the keys of both.
        at = (probed.spec.id, column.name)
        if start is self.start and at in self._known:
            return self._known[at]
        if probed.below is None:
            found = self._keys_of_unit(probed, column, start)
        else:
            fork, place = probed.below, probed.below.position(column)
            if place is None:
                order = fork.order(column)
                found = self._keys(order.first, column, start)
            else:
                on = fork.join.on
                left = self._keys(fork.left, KeyColumn.of("hash", on.left_key[place]), start)
                found = left.both(self._keys(fork.right, KeyColumn.of("hash", on.right_key[place]), start))
        if start is self.start:
            self._known[at] = found
        return found

    def _keys_of_unit(self, probed: ProbedState, column: KeyColumn, start: Mapping[str, int]) -> Keys:
        old = self._take(probed, None, None, start)
        if not len(old):
            return Keys(np.zeros(0, np.int64), dict(old.valid_to))
        codes, valid = self.codes(old, column)
        if valid is None:
            return Keys.of(codes, old.valid_to)
        here = indices(valid)
        return Keys.of(codes[here], {c: words[here] for c, words in old.valid_to.items()}, nulls=len(here) < len(codes))


def is_old(combinations: Combinations, start: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Test which combinations have no row at or after `start`."""
    old = np.ones(len(combinations), np.bool_)
    for label, words in combinations.refs.items():
        old &= words < start[label]
    return old


def _before(combinations: Combinations, start: Mapping[str, int]) -> Combinations:
    old = is_old(combinations, start)
    return combinations if old.all() else combinations.take(old)


def complete_ahead(completion: Completion, root: Fork, budget: int) -> None:
    """Complete states for keys that no row has probed yet, those of the newest rows first, within a budget.

    The deepest states come first, because those above are made of them. A batch may overrun the budget by its last
    keys; a state without keys is completed once all its pairs are within it.
    """
    spent = _compared(completion)
    limit = spent + budget
    for probed in root.probed_states():
        if completion.is_complete(probed):
            continue
        if probed.primary is None:
            if _pairs(completion, probed) <= limit - _compared(completion):
                completion.complete_all(probed)
            continue
        newest, done, size = completion.left(probed, probed.primary).newest(), 0, 1
        while done < len(newest) and _compared(completion) < limit:
            before, batch = _compared(completion), newest[done : done + size]
            completion.complete(probed, probed.primary, united([batch]))
            done += len(batch)
            cost = max((_compared(completion) - before) / len(batch), 0.01)
            size = int(max(min(size * GROWTH, (limit - _compared(completion)) / cost), 1))


def _compared(completion: Completion) -> int:
    return completion.lane.counted(completion.operator).comparisons


def _pairs(completion: Completion, probed: ProbedState) -> float:
    # Infinite while the states below are not complete themselves.
    assert probed.below is not None
    sides = probed.below.left, probed.below.right
    if not all(completion.is_complete(side) for side in sides):
        return math.inf
    left, right = (completion.lane.join(side.spec).old for side in sides)
    return sum(count_candidates(probed.below.join.on, one, other) for one in left for other in right)


Demand = dict[str, dict[str, tuple[KeyColumn, list[Codes]]]]
"""By state and column, the codes it must be complete for."""


def probe(completion: Completion, root: Fork) -> Combinations:
    """Compute a plan's delta, completing each state just before something probes it."""
    forks = list(root.forks())
    _anticipate(completion, forks)
    for fork in forks:
        for one in fork.probes():
            if not completion.is_complete(one.state):
                completion.complete_for(one, one.other.operator.delta(completion.lane))
        fork.join.delta(completion.lane)
    return root.join.delta(completion.lane)


def _anticipate(completion: Completion, forks: Sequence[Fork]) -> None:
    """Complete states for the new rows of the units on the other side of their joins, the deepest first.

    What a higher state must be complete for a deeper one must be too; gathered beforehand, it is completed once.
    Otherwise each of a hundred joins would go down all the way for its own keys.
    """
    demand: Demand = {}
    probed_states: list[ProbedState] = []
    own = {id(side.below): side for fork in forks for side in (fork.left, fork.right) if side.below is not None}
    for fork in reversed(forks):
        if id(fork) in own:
            _pass_on(completion, own[id(fork)], fork, demand)
        for one in fork.probes():
            if completion.is_complete(one.state):
                continue
            probed_states.append(one.state)
            # What other conditions find is compared when it is needed, not once more beforehand.
            if one.other.below is None and one.state.primary is not None and one.state.primary.index != "scan":
                arrived = one.other.operator.delta(completion.lane)
                _want(demand, one.state, one.state.primary, completion.reached(one, arrived))
    for probed in reversed(probed_states):
        for column, codes in demand.get(probed.spec.id, {}).values():
            completion.complete(probed, column, united(codes))


def _pass_on(completion: Completion, probed: ProbedState, fork: Fork, demand: Demand) -> None:
    if completion.is_complete(probed):
        return
    for column, codes in demand.get(probed.spec.id, {}).values():
        order = fork.order(column)
        fresh = completion.fresh(probed, column, united(codes))
        if order.first.below is not None and order.ask is not None:
            _want(demand, order.first, order.ask, fresh)
        elif fork.position(column) is not None and order.other is not None:
            _want(demand, order.second, order.other, fresh)


def _want(demand: Demand, probed: ProbedState, column: KeyColumn, codes: Codes) -> None:
    if len(codes):
        demand.setdefault(probed.spec.id, {}).setdefault(column.name, (column, []))[1].append(codes)
