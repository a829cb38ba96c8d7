"""JISC §4: results lost by the paper's own rules over random courses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.embedded.engine import Engine
from midstream.lab.drawing import bars
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table

PRESENT = "Procedure 1, line 1"
FRESH = "Definition 2"
OF_STREAM = "Definition 2 by stream"
CASE_3 = "§4.3, case 3"
PRINTED = "all three, as printed"
PER_STATE = "attempts per state"
RULES = (PRESENT, FRESH, OF_STREAM, CASE_3, PRINTED, PER_STATE)

ENGINE = "the engine"

Plan = str | tuple["Plan", "Plan"]
Results = Counter[frozenset[int]]


@dataclass(frozen=True)
class RuleCourse:
    """Rows as (stream, key), each with its number, and before which number the plan changes to which."""

    names: str
    plan: Plan
    rows: Sequence[tuple[str, int]]
    moves: Mapping[int, Plan]

    @staticmethod
    def drawn(seed: int, *, bushy: bool, streams: int = 5, rows: int = 60, keys: int = 3, moves: int = 3) -> RuleCourse:
        """Draw a course; plans are left-deep or of any shape, and streams of any rates."""
        random = np.random.default_rng([seed, bushy])
        names = "ABCDEFGH"[:streams]
        plan = _left_deep if not bushy else _bushy
        at = sorted(random.choice(np.arange(rows // 6, rows), moves, replace=False).tolist())
        shares = random.dirichlet(np.ones(streams))
        arrivals = [(names[int(random.choice(streams, p=shares))], int(random.integers(keys))) for _ in range(rows)]
        return RuleCourse(names, plan(names, random), arrivals, {number: plan(names, random) for number in at})

    def due(self) -> Results:
        """Compute every result: a row of each stream, all of one key."""
        of_key: dict[int, dict[str, list[int]]] = defaultdict(lambda: {name: [] for name in self.names})
        for number, (stream, key) in enumerate(self.rows):
            of_key[key][stream].append(number)
        return Counter(frozenset(one) for rows in of_key.values() for one in product(*rows.values()))

    def by(self, rule: str) -> Results:
        """Compute the results that JISC finds by one of the `RULES`."""
        running = _Running(rule, self.plan)
        found: Results = Counter()
        for number, (stream, key) in enumerate(self.rows):
            if number in self.moves:
                running.move(self.moves[number])
            found.update(running.process(stream, key, number))
        return found

    def by_engine(self) -> Results:
        """Compute the results of the engine's own JISC, a row a step."""
        engine = Engine()
        for name in self.names:
            engine.create_stream(name, "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
        select = ", ".join(f"{name}.v AS {name.lower()}" for name in self.names)
        where = " AND ".join(f"{self.names[0]}.k = {name}.k" for name in self.names[1:])
        sql = f"SELECT {select} FROM {', '.join(self.names)} WHERE {where} WINDOW 1 DAY"
        engine.add_query("q", sql, plan=written(self.plan))
        plan, found = self.plan, Results()
        for number, (stream, key) in enumerate(self.rows):
            if number in self.moves and self.moves[number] != plan:
                plan = self.moves[number]
                engine.migrate("q", written(plan), "jisc", decompose=False)
            times = pa.array([number * 1_000_000], pa.timestamp("us"))
            answer = engine.push({stream: pa.table({"k": [key], "v": [number], "ts": times})})["q"]
            found.update(frozenset(row.values()) for row in answer.select(range(len(self.names))).to_pylist())
        return found


def written(plan: Plan) -> str:
    """Write the plan as the engine reads it.

    >>> written((("A", "B"), "C"))
    '((A B) C)'
    """
    return plan if isinstance(plan, str) else f"({written(plan[0])} {written(plan[1])})"


def _left_deep(names: str, random: np.random.Generator) -> Plan:
    plan: Plan = ""
    for name in random.permutation(list(names)).tolist():
        plan = (plan, name) if plan else name
    return plan


def _bushy(names: str, random: np.random.Generator) -> Plan:
    parts: list[Plan] = list(names)
    while len(parts) > 1:
        one, other = (parts.pop(int(random.integers(len(parts)))) for _ in range(2))
        parts.append((one, other))
    return parts[0]


@dataclass
class _State:
    """The entries of an operator by key; `left` are the keys that §4.3 counts, None without a counter."""

    labels: frozenset[str]
    children: tuple[_State, ...] = ()
    entries: dict[int, set[frozenset[int]]] = field(default_factory=lambda: defaultdict(set))
    complete: bool = True
    attempted: set[int] = field(default_factory=set)
    left: set[int] | None = None

    def keys(self) -> set[int]:
        return {key for key, found in self.entries.items() if found}


class _Running:
    """A plan, its states, and which of them are complete."""

    def __init__(self, rule: str, plan: Plan) -> None:
        self.rule = rule
        self.states: dict[frozenset[str], _State] = {}
        self.received: set[tuple[str, int]] = set()
        self.root = self._built(plan, {})

    def obeys(self, rule: str) -> bool:
        # `PRINTED` makes all of the paper's tests.
        return self.rule in (rule, PRINTED)

    @property
    def by_value(self) -> bool:
        return self.obeys(FRESH) or self.rule == OF_STREAM

    def move(self, plan: Plan) -> None:
        """Carry it to another plan: what both have is kept, complete only if it was so before (§4.5)."""
        before, self.states, self.received = self.states, {}, set()
        self.root = self._built(plan, before)
        for state in self.states.values():
            if not state.complete:
                self._count(state)
        self._detect()

    def process(self, stream: str, key: int, number: int) -> list[frozenset[int]]:
        # What the row joins to at the root (Procedure 1).
        # The definition says of any stream; the text below it looks into the hash table of the row's own stream.
        value = (stream if self.rule == OF_STREAM else "", key)
        fresh = value not in self.received
        self.received.add(value)
        state = self.states[frozenset(stream)]
        arrived = {frozenset([number])}
        state.entries[key] |= arrived
        while state is not self.root:
            parent = next(one for one in self.states.values() if state in one.children)
            (opposite,) = (child for child in parent.children if child is not state)
            if not opposite.complete and not self._is_passed(opposite, key, fresh):
                self._complete(opposite, key)
            arrived = {one | other for one in arrived for other in opposite.entries[key]}
            parent.entries[key] |= arrived
            state = parent
            self._detect()
        return list(arrived)

    def _is_passed(self, opposite: _State, key: int, fresh: bool) -> bool:
        # Such a state is probed without being completed for the key.
        if self.obeys(PRESENT) and opposite.entries[key]:
            return True
        return not fresh if self.by_value else key in opposite.attempted

    def _complete(self, state: _State, key: int) -> None:
        # Procedure 2.
        for child in state.children:
            passed = key in child.attempted or (self.obeys(PRESENT) and child.entries[key])
            if not child.complete and (self.by_value or not passed):
                self._complete(child, key)
        left, right = state.children
        state.entries[key] |= {one | other for one in left.entries[key] for other in right.entries[key]}
        state.attempted.add(key)
        if state.left is not None:
            state.left.discard(key)

    def _built(self, plan: Plan, before: Mapping[frozenset[str], _State]) -> _State:
        children = () if isinstance(plan, str) else tuple(self._built(part, before) for part in plan)
        labels = frozenset(plan) if isinstance(plan, str) else frozenset[str]().union(*(c.labels for c in children))
        known = before.get(labels)
        if known is None:
            # Before the first row every state is complete.
            state = _State(labels, children, complete=not before)
        else:
            state = _State(labels, children, known.entries, known.complete, known.attempted, known.left)
        self.states[labels] = state
        return state

    def _count(self, state: _State) -> None:
        # §4.3, cases 1 and 2.
        whole = [child for child in state.children if child.complete]
        state.left = None
        if whole:
            state.left = min((child.keys() for child in whole), key=len) - state.attempted
        elif not self.obeys(CASE_3):
            state.left = {key for key in range(64) if key not in state.attempted}

    def _detect(self) -> None:
        # By their counters, and by their children where case 3 is obeyed.
        for state in sorted(self.states.values(), key=lambda one: len(one.labels)):
            by_children = self.obeys(CASE_3) and state.left is None
            if not state.complete:
                state.complete = all(c.complete for c in state.children) if by_children else not state.left


THEOREM = Claim("JISC does not miss any output (Theorem 1).", "JISC §4, Theorem 1")
LINE_1 = Claim("A key that an incomplete state contains needs no completion there.", "JISC §4, Procedure 1, line 1")
ATTEMPTED = Claim("An attempted row finds complete entries at all operators.", "JISC §4.4, Definition 2")
BY_STREAM = Claim("It is enough to look into the hash table of the row's own stream.", "JISC §4.4")
CHILDREN = Claim("A state is complete once both of its children got complete.", "JISC §4.3, case 3")
ONCE = Claim("No output is produced more than once (Theorem 3).", "JISC §4, Theorem 3")
OURS = Claim("With attempts kept for each state nothing is lost.", "midstream, put right")

PLANS, DUE, LOST, DOUBLED = "plans", "results due", "results lost (%)", "results doubled"
COURSES, LOSING = "courses", "courses that lose results"


class Jisc04(Figure):
    """Rules of the paper, each alone and together, beside ours and the engine."""

    name: ClassVar[str] = "jisc_04"
    title: ClassVar[str] = "results lost by the printed rules"
    source: ClassVar[str] = "JISC §4, Theorem 1"
    strategies: ClassVar[frozenset[str]] = frozenset({"jisc"})
    setting: ClassVar[str] = (
        "Random courses: 60 rows of 3 keys over five streams of random rates, no window, three transitions between "
        "random plans, left-deep or bushy. A tuple-at-a-time transcription of Procedures 1 and 2 runs each course by "
        f"one rule: `{PRESENT}` completes a state only for a key that it does not contain; `{FRESH}` only for a key "
        f"that no row has brought since the transition, `{OF_STREAM}` that no row of the same stream has brought; "
        f"`{CASE_3}` declares a state complete when both children got complete, and keeps attempts for each state "
        f"otherwise; `{PRINTED}` obeys the first, second and fourth. `{PER_STATE}` keeps the attempted keys of each "
        f"state, as midstream does, and `{ENGINE}` is midstream itself, on the first of the same courses."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        courses, of_engine = scale.pick(quick=(100, 12), full=(1000, 60))
        rows = []
        for plans in ("left-deep", "bushy"):
            drawn = [RuleCourse.drawn(seed, bushy=plans == "bushy") for seed in range(courses)]
            for rule in (*RULES, ENGINE):
                due = lost = doubled = losing = 0
                taken = drawn[:of_engine] if rule == ENGINE else drawn
                for course in taken:
                    expected = course.due()
                    found = course.by_engine() if rule == ENGINE else course.by(rule)
                    missing = (expected - found).total()
                    due, lost = due + expected.total(), lost + missing
                    doubled, losing = doubled + (found - expected).total(), losing + bool(missing)
                share = 100 * lost / due if due else 0.0
                rows.append({PLANS: plans, "case": rule, COURSES: len(taken), DUE: due, LOST: share, LOSING: losing,
                             DOUBLED: doubled})  # fmt: skip
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        def losses(rule: str) -> tuple[bool, str]:
            losing, courses = column(data, LOSING, case=rule), column(data, COURSES, case=rule)
            shares = column(data, LOST, case=rule)
            numbers = ", ".join(
                f"{plans}: {share:.3g} % of the results, in {int(n)} of {int(of)} courses"
                for plans, share, n, of in zip(("left-deep", "bushy"), shares, losing, courses, strict=True)
            )
            return not losing.any(), f"lost by `{rule}`: {numbers}"

        twice = {rule: int(column(data, DOUBLED, case=rule).sum()) for rule in (*RULES, ENGINE)}
        ours, of_ours = losses(PER_STATE)
        engine, of_engine = losses(ENGINE)
        return (
            THEOREM.judged(*losses(PRINTED), "the rules below lose results, each by itself"),
            LINE_1.judged(
                *losses(PRESENT),
                "a new row leaves its own combinations in an incomplete state, so its key is present there, but the "
                "combinations of old rows with that key are not",
            ),
            ATTEMPTED.judged(
                *losses(FRESH),
                "the first row of a value may meet complete states only: it marks the value as attempted, and nothing "
                "was completed for it",
            ),
            BY_STREAM.judged(*losses(OF_STREAM), "a row of the same stream takes another way after a transition"),
            CHILDREN.judged(
                *losses(CASE_3),
                "the children are completed by probes of each other's rows, which complete nothing above them",
            ),
            ONCE.judged(
                not any(twice.values()), f"doubled: {', '.join(f'{n} by `{r}`' for r, n in twice.items())}", "counted"
            ),
            OURS.judged(ours and engine, f"{of_ours}; {of_engine}", "the rule or the engine is wrong"),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        bars(canvas.subplots(), data, PLANS, LOST)
