"""The suite for a policy: for any decision, and any answer to a proposal, queries answer what a database answers.

A policy may cost work, never a result (`docs/semantics.md`, invariant 4). So the suite draws joins, drifting rows,
modes, what is allowed, pins, answers to proposals, lanes and restarts. All that a course answered is held against
DuckDB, no switch may be one that was not allowed, and the same course once more must bring the same events.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from midstream.embedded import Engine
from midstream.migration.strategy_contract import strategies
from midstream.model.errors import QueryError
from midstream.model.events import Event, MigrationBegun, PlanPinned, PlanReviewed, ProposalClosed, ReviewFailed
from midstream.optimizer.policies.policy_contract import Policy, policies
from midstream.testing.strategies import plans
from midstream.testing.suite import SCHEMA, STEP, TIES, DrawnJoin, Row, answer_over, installed, located

STEPS = 6
QUERY = "looked after"
MODES = ("auto", "auto", "auto", "ask", "suggest")
ONCE_MORE = 8
"""Of so many courses one is run twice."""

KEPT = 512
"""So many joins and their answers are kept for the policies that are checked after the first."""

KEYS = (1, 2, 12)
"""Of how many keys a stream's rows have one; it changes as the stream drifts."""


@dataclass(frozen=True)
class DriftingJoin:
    """A join and the rows of each step, whose keys are few or many, and that changes in the middle.

    It does not depend on the policy, and its answer on nothing else.
    """

    join: DrawnJoin
    steps: tuple[dict[str, pa.Table], ...]

    @staticmethod
    @lru_cache(KEPT)
    def draw(number: int) -> DriftingJoin:
        """Draw a join; it is the same for every policy."""
        rng = Random(number)
        streams = rng.choice(("ABC", "ABC", "ABC", "ABC", "ABCD"))
        windows = tuple(rng.choice((2, 3, 5)) * STEP // 2 for _ in streams)
        before, after = ({name: rng.choice(KEYS) for name in streams} for _ in range(2))
        steps = tuple(
            {name: _table(rng, step, (before if step < STEPS // 2 else after)[name]) for name in streams}
            for step in range(STEPS)
        )
        return DriftingJoin(DrawnJoin(streams, rng.choice(TIES), windows), steps)

    @cached_property
    def expected(self) -> Counter[Row]:
        """All that a database answers."""
        return answer_over(self.join, self.steps)


@dataclass(frozen=True)
class PolicyCourse:
    """One query that a policy looks after, and everything that happens to it, drawn from a number."""

    drifting: DriftingJoin
    plan: str
    lanes: int
    settings: dict[str, Any]
    pinned: frozenset[int]
    restarted: frozenset[int]
    answers: tuple[str, ...]

    @staticmethod
    def draw(policy: Policy, number: int) -> PolicyCourse:
        """Draw any course."""
        drifting, rng = DriftingJoin.draw(number), Random(f"course {number}")
        streams = drifting.join.streams
        allow = [plans(rng, streams) for _ in range(2)] if rng.random() < 0.3 else []
        allow += rng.sample(strategies(), 3) if rng.random() < 0.3 else []
        return PolicyCourse(
            drifting,
            plans(rng, streams),
            rng.choice((1, 1, 1, 2)),
            {
                "policy": policy.name,
                "mode": rng.choice(MODES),
                "objective": rng.choice(("work", "latency", "memory")),
                "allow": allow,
                "review": STEP,
                "effort": 1.0,
                **{name: _option(rng, policy, name) for name in policy.options},
            },
            frozenset({rng.randrange(STEPS)} if rng.random() < 0.15 else ()),
            frozenset({rng.randrange(STEPS)} if rng.random() < 0.2 else ()),
            tuple(rng.choice(("approve", "reject", "nothing")) for _ in range(STEPS)),
        )

    def run(self) -> tuple[tuple[Event, ...], Counter[Row]]:
        """Run the course and return the events, and all that was answered."""
        engine, happened = Engine(lanes=self.lanes), list[Event]()
        join = self.drifting.join
        for name in join.streams:
            engine.create_stream(name, SCHEMA, timestamp="ts", lateness=STEP)
        engine.add_query(QUERY, join.cql(), plan=self.plan)
        with suppress(QueryError):  # What is allowed may leave nothing to choose.
            engine.optimize(QUERY, **self.settings)
        found = Counter[Row]()
        for number, tables in enumerate(self.drifting.steps):
            if number in self.pinned:
                engine.pin(QUERY)
            if number in self.restarted:
                happened += engine.events
                engine = _restarted(engine)
            with suppress(QueryError):  # Nothing may be proposed.
                if self.answers[number % STEPS] != "nothing":
                    getattr(engine, self.answers[number % STEPS])(QUERY)
            found.update(_rows(engine.push(tables)[QUERY]))
        return (*happened, *engine.events), found


def check_policy(kind: type[Policy], *, cases: int = 10, seed: int = 0) -> int:
    """Check that a policy changes no answer and obeys its settings. Return how often the policy switched plans.

    The check runs `cases` random tests with the seeds `seed`, `seed + 1` and so on. If a test fails, the check raises
    an `AssertionError` that names the seed. `check_policy(kind, cases=1, seed=...)` repeats the test with this seed.
    The policy does not have to be installed.

    >>> from midstream.optimizer.policies.static import Static
    >>> check_policy(Static, cases=2) >= 0
    True
    """
    switched = 0
    with installed(policies(), kind.name, kind()):
        for number in range(seed, seed + cases):
            with located(f"{kind.name}, seed {number}"):
                switched += _checked(PolicyCourse.draw(kind(), number), again=number % ONCE_MORE == 0)
    return switched


def _checked(course: PolicyCourse, *, again: bool) -> int:
    events, found = course.run()
    with located(f"{course.drifting.join.cql()}, {course.settings}"):
        expected = course.drifting.expected
        assert found == expected, f"lacks {dict(expected - found)}, has too many {dict(found - expected)}"
        failed = next((event for event in events if isinstance(event, ReviewFailed)), None)
        assert failed is None, f"a review failed: {failed}"
        _keeps_to(course, events)
        if again:
            assert course.run()[0] == events, "the same course once more brought other events"
    return sum(isinstance(event, PlanReviewed) and event.decision == "switch" for event in events)


def _keeps_to(course: PolicyCourse, events: Sequence[Event]) -> None:
    # Every migration was decided in auto or approved, to an allowed plan by an allowed strategy.
    allowed = set(course.settings["allow"])
    by = allowed & set(strategies()) or set(strategies())
    pinned = False
    for number, event in enumerate(events):
        if isinstance(event, PlanPinned):
            pinned = event.pinned
        if isinstance(event, PlanReviewed):
            assert not pinned, "a pinned query was reviewed"
            may = event.decision != "switch" or course.settings["mode"] == "auto"
            assert may, f"it switched in mode {course.settings['mode']}"
        if isinstance(event, MigrationBegun):
            cause = events[number - 1]
            decided = isinstance(cause, PlanReviewed) and cause.decision == "switch" and cause.chosen == event.new
            approved = isinstance(cause, ProposalClosed) and cause.state == "approved" and cause.plan == event.new
            assert decided or approved, f"nobody decided to move to {event.new}"
            assert event.strategy in by, f"it moved by {event.strategy}, which is not allowed"


def _option(rng: Random, policy: Policy, name: str) -> float | str:
    default = policy.options[name]
    return rng.choice(policy.words[name]) if isinstance(default, str) else rng.choice((0, default, 2 * default))


def _table(rng: Random, step: int, keys: int) -> pa.Table:
    count = rng.choice((0, 3, 5))
    columns = {
        "u": [100 * step + number for number in range(count)],
        "k": [rng.randrange(keys) if rng.random() < 0.9 else None for _ in range(count)],
        "v": [rng.randrange(4) for _ in range(count)],
        "ts": [step * STEP + rng.randrange(2 * STEP) for _ in range(count)],
    }
    return pa.table(columns, schema=SCHEMA)


def _rows(answer: pa.Table) -> list[Row]:
    times = answer["_ts"].cast(pa.int64())
    return list(zip(*(column.to_pylist() for column in (*answer.columns[:-1], times)), strict=True))


def _restarted(engine: Engine) -> Engine:
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "saved")
        loaded = Engine.load(Path(folder) / "saved")
    # What happened before is in the events of the engine that was saved.
    loaded._events.clear()
    return loaded
