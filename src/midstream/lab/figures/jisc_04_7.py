"""JISC §4.7: results of set differences that are lost where rows are forwarded past incomplete states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.embedded.engine import Engine
from midstream.lab.drawing import bars
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table

FORWARDED = "forwarding, as printed"
COMPLETED = "completed for the key that comes free"
RULES = (FORWARDED, COMPLETED)

ENGINE = "the engine"
OUTER = "A"

Entries = Counter[tuple[int, int]]


@dataclass(frozen=True)
class DifferenceCourse:
    """A row (stream, key) each second, and before which number the inner streams are subtracted in which order.

    `windows` are in seconds; a row of age exactly its window still counts.
    """

    windows: Mapping[str, int]
    order: str
    rows: Sequence[tuple[str, int]]
    moves: Mapping[int, str]

    @staticmethod
    def drawn(seed: int, *, ends: bool, rows: int = 120, keys: int = 8, moves: int = 3) -> DifferenceCourse:
        """Draw a course of three inner streams, whose windows end within the outer one's or never."""
        random = np.random.default_rng([47, seed, ends])
        order = ["".join(random.permutation(list("BCD")).tolist()) for _ in range(moves + 1)]
        at = sorted(random.choice(np.arange(rows // 6, rows), moves, replace=False).tolist())
        streams = random.choice(list("ABCD"), rows, p=(0.4, 0.2, 0.2, 0.2)).tolist()
        inner = {name: int(random.integers(5, 30)) if ends else rows + 1 for name in "BCD"}
        drawn = list(zip(streams, random.integers(0, keys, rows).tolist(), strict=True))
        return DifferenceCourse({OUTER: 30, **inner}, order[0], drawn, dict(zip(at, order[1:], strict=True)))

    def due(self) -> Entries:
        """Compute every entry: an outer row gets into the answer as it comes, or once nothing matches it any more."""
        found, inside = Entries(), set[int]()
        for second in range(len(self.rows) + 1):
            # Rows leave their windows before the row of the second comes.
            for come in (second, second + 1)[: 2 if second < len(self.rows) else 1]:
                alive = [n for n in range(come) if second - n <= self.windows[self.rows[n][0]]]
                taken = {self.rows[n][1] for n in alive if self.rows[n][0] != OUTER}
                now = {n for n in alive if self.rows[n][0] == OUTER and self.rows[n][1] not in taken}
                found.update((n, second) for n in now - inside)
                inside = now
        return found

    def by(self, rule: str) -> Entries:
        """Compute the entries that a pipeline of set differences finds by one of the `RULES`."""
        running = _Pipeline(self, rule)
        for second in range(len(self.rows) + 1):
            if second in self.moves:
                running.move(self.moves[second], second)
            running.expire(second)
            if second < len(self.rows):
                running.process(second)
        return running.found

    def by_engine(self) -> Entries:
        """Compute the entries of the engine's own log, a row a step."""
        engine = Engine()
        for name in self.windows:
            engine.create_stream(name, "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
        others = "".join(f" EXCEPT ON (k) {name} [RANGE {self.windows[name]} SECONDS]" for name in "BCD")
        engine.add_query("q", f"SELECT v, _ts FROM {OUTER} [RANGE {self.windows[OUTER]} SECONDS]{others}")
        found = Entries()
        for second, (stream, key) in enumerate([*self.rows, ("", -1)]):
            if second in self.moves and engine.manifest.queries["q"].plan != _written(self.moves[second]):
                engine.migrate("q", _written(self.moves[second]), "jisc")
            # At the end a row of each stream lets the log go on to that second.
            times = pa.array([second * 1_000_000], pa.timestamp("us"))
            row = pa.table({"k": [key], "v": [second], "ts": times})
            log = engine.push(dict.fromkeys([stream] if stream else self.windows, row))["q"]
            # A row gets in again a moment after a second, and is seen to in the next one.
            seconds = [-(-moment // 1_000_000) for moment in log["_ts"].cast(pa.int64()).to_pylist()]
            entries = zip(log["_op"].to_pylist(), log["v"].to_pylist(), seconds, strict=True)
            found.update((number, at) for operation, number, at in entries if operation == "+")
        return found


def _written(order: str) -> str:
    plan = OUTER
    for name in order:
        plan = f"({plan} {name})"
    return plan


@dataclass
class _Level:
    """A set difference: the outer rows that none of `subtracted` matches. Rows from before `since` may be missing."""

    subtracted: frozenset[str]
    rows: set[int]
    since: int = 0


class _Pipeline:
    """The set differences of an order, from the first subtracted stream to the last, and the rows in all windows."""

    def __init__(self, course: DifferenceCourse, rule: str) -> None:
        self.course, self.rule, self.order = course, rule, course.order
        self.alive: dict[str, list[int]] = {name: [] for name in course.windows}
        self.levels = [_Level(frozenset(course.order[: at + 1]), set()) for at in range(len(course.order))]
        self.found = Entries()

    def move(self, order: str, second: int) -> None:
        """Carry it to another order: states that both orders have are kept, the others begin without old rows."""
        before = {level.subtracted: level for level in self.levels}
        self.order = order
        self.levels = [
            before.get(one, _Level(one, set(), since=second))
            for one in (frozenset(order[: at + 1]) for at in range(len(order)))
        ]

    def expire(self, second: int) -> None:
        """Let rows go whose windows have ended, outer ones first."""
        for name, numbers in self.alive.items():
            for number in [n for n in numbers if second - n > self.course.windows[name]]:
                numbers.remove(number)
                if name == OUTER:
                    self._clear(0, {number})
                else:
                    self._freed(name, self._key(number), second)

    def process(self, number: int) -> None:
        stream, key = self.course.rows[number]
        self.alive[stream].append(number)
        if stream == OUTER:
            self._rise({number}, 0, number)
        else:
            # Forwarding: whether or not a state is complete, the ones above it are cleared too.
            self._clear(self.order.index(stream), self._outer(key))

    def _key(self, number: int) -> int:
        return self.course.rows[number][1]

    def _clear(self, at: int, gone: set[int]) -> None:
        for level in self.levels[at:]:
            level.rows -= gone

    def _matches(self, name: str, key: int) -> bool:
        return any(self._key(one) == key for one in self.alive[name])

    def _freed(self, stream: str, key: int, second: int) -> None:
        # Outer rows that an inner row has kept out get in again (§2.1), from the state below.
        if self._matches(stream, key):
            return
        at = self.order.index(stream)
        below = self._outer(key) if at == 0 else {one for one in self.levels[at - 1].rows if self._key(one) == key}
        if self.rule == COMPLETED and at and any(one < self.levels[at - 1].since for one in self._outer(key)):
            # Just in time: the state below is completed for this key from the rows of the windows.
            below = set() if any(self._matches(name, key) for name in self.order[:at]) else self._outer(key)
            for level in self.levels[:at]:
                level.rows |= below
        self._rise(below, at, second)

    def _outer(self, key: int) -> set[int]:
        return {one for one in self.alive[OUTER] if self._key(one) == key}

    def _rise(self, rows: set[int], at: int, second: int) -> None:
        # Rows go up until an inner row of their key stops them.
        for name, level in zip(self.order[at:], self.levels[at:], strict=True):
            rows = {one for one in rows if not self._matches(name, self._key(one))}
            if level is self.levels[-1]:
                self.found.update((one, second) for one in rows - level.rows)
            level.rows |= rows


CLEARED = Claim(
    "An inner row that is forwarded past incomplete states to the first complete one clears what it matches; inner "
    "rows stay.",
    "JISC §4.7",
)
SLIDING = Claim("Forwarding carries a plan of set differences to another one, with sliding windows.", "JISC §4.7, §2.1")
ONCE = Claim("No output is produced more than once (Theorem 3), by set differences.", "JISC §4.7")
OURS = Claim("With the state below completed for the key that comes free nothing is lost.", "midstream, put right")

WINDOWS, DUE, LOST, DOUBLED = "windows", "results due", "results lost (%)", "results doubled"
COURSES, LOSING = "courses", "courses that lose results"
STAYING, ENDING = "inner rows stay", "inner windows end"


class Jisc047(Figure):
    """Forwarding as printed, beside states completed for a key, and the engine."""

    name: ClassVar[str] = "jisc_04_7"
    title: ClassVar[str] = "results of set differences lost by forwarding"
    source: ClassVar[str] = "JISC §4.7"
    strategies: ClassVar[frozenset[str]] = frozenset({"jisc"})
    setting: ClassVar[str] = (
        "Random courses: 120 rows of 8 keys, a row a second, three inner streams subtracted from an outer one, three "
        "transitions between random orders. The outer window is 30 seconds; inner windows are 5 to 29 seconds, or "
        "longer than the course. A result is an outer row that gets into the answer: as it comes, or when the last "
        "inner row that matched it has left its window. A tuple-at-a-time pipeline runs each course, by "
        f"`{FORWARDED}`, and `{COMPLETED}`: then the state below the difference is completed from the rows of the "
        f"windows before an outer row is looked for in it. `{ENGINE}` is midstream itself, on the first of the same "
        "courses. It finds the relation from the lifetimes of rows and of their matches, in which no order matters."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        courses, of_engine = scale.pick(quick=(100, 6), full=(1000, 60))
        rows = []
        for windows in (STAYING, ENDING):
            drawn = [DifferenceCourse.drawn(seed, ends=windows == ENDING) for seed in range(courses)]
            expected = [course.due() for course in drawn]
            for rule in (*RULES, ENGINE):
                due = lost = doubled = losing = 0
                taken = drawn[:of_engine] if rule == ENGINE else drawn
                for course, entries in zip(taken, expected, strict=False):
                    found = course.by_engine() if rule == ENGINE else course.by(rule)
                    missing = (entries - found).total()
                    due, lost = due + entries.total(), lost + missing
                    doubled, losing = doubled + (found - entries).total(), losing + bool(missing)
                rows.append({WINDOWS: windows, "case": rule, COURSES: len(taken), DUE: due, LOST: 100 * lost / due,
                             LOSING: losing, DOUBLED: doubled})  # fmt: skip
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        def losses(rule: str, *windows: str) -> tuple[bool, str]:
            def of(name: str) -> list[float]:
                return [float(column(data, name, **{"case": rule, WINDOWS: one})[0]) for one in windows]

            numbers = ", ".join(
                f"{one}: {share:.3g} % of the results, in {n:.0f} of {courses:.0f} courses"
                for one, share, n, courses in zip(windows, of(LOST), of(LOSING), of(COURSES), strict=True)
            )
            return not any(of(LOSING)), f"lost by `{rule}`: {numbers}"

        twice = {rule: int(column(data, DOUBLED, case=rule).sum()) for rule in (*RULES, ENGINE)}
        ours, of_ours = losses(COMPLETED, STAYING, ENDING)
        engine, of_engine = losses(ENGINE, STAYING, ENDING)
        return (
            CLEARED.judged(*losses(FORWARDED, STAYING), "an outer row is left in the answer, or kept out of it"),
            SLIDING.judged(
                *losses(FORWARDED, ENDING),
                "when an inner row leaves its window, outer rows that it kept out get in again (§2.1); they are looked "
                "for in the state below, which is incomplete and lacks them, and nothing completes it",
            ),
            ONCE.judged(
                not any(twice.values()), f"doubled: {', '.join(f'{n} by `{r}`' for r, n in twice.items())}", "counted"
            ),
            OURS.judged(ours and engine, f"{of_ours}; {of_engine}", "the rule or the engine is wrong"),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        bars(canvas.subplots(), data, WINDOWS, LOST)
