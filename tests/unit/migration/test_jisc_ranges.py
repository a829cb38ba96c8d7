"""JISC where no equality says what a probe finds: bands, other conditions, conditions of the whole state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.events import MigrationEnded, MigrationProgressed
from tests.unit.migration.flows import worked
from tests.unit.migration.rides import SECOND, rows_of

SELECT = "SELECT A.v AS a, B.v AS b, C.v AS c, D.v AS d FROM A, B, C, D WHERE "
OLD, NEW = "(((A B) C) D)", "(A (B (C D)))"
STAIRS = {OLD: f"stairs({OLD})", NEW: f"stairs({NEW})"}
BAND = "ABS(A.k - B.k) <= 10 AND ABS(B.k - C.k) <= 10 AND ABS(C.k - D.k) <= 10"
"""1 % of the pairs of two streams of 2,000 keys."""


@dataclass
class Run:
    """Steps of a second each; a move is (plan, strategy, options) before its step."""

    condition: str
    keys: int = 2000
    rows: int = 8
    window: int = 20
    plan: str = OLD
    nulls: float = 0.0

    def go(self, steps: int, moves: dict[int, tuple[str, str, dict[str, Any]]] | None = None, saved: Any = None) -> Any:
        """The engine after so many steps, and the results of each."""
        made = ms.Engine()
        for name in "ABCD":
            made.create_stream(name, "k BIGINT, j BIGINT, f DOUBLE, v BIGINT, ts TIMESTAMP", timestamp="ts")
        made.add_query("q", f"{SELECT}{self.condition} WINDOW {self.window} SECONDS", plan=self.plan)
        found = []
        for number in range(steps):
            if moves and number in moves:
                plan, strategy, options = moves[number]
                made.migrate("q", plan, strategy, **options)
            if saved is not None and number in (8, 9):
                made.save(saved / str(number))
                made = ms.Engine.load(saved / str(number))
            found.append(rows_of(made.push(self.batch(number))["q"]))
        return made, found

    def batch(self, number: int) -> dict[str, pa.Table]:
        """The rows of a step: whole numbers k and j, and f, which may be NaN, infinite or -0.0."""
        random = np.random.default_rng([11, number])
        tables = {}
        for name in "ABCD":
            times = np.sort(random.integers(number * SECOND, (number + 1) * SECOND, self.rows))
            odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
            numbers = random.integers(0, self.keys, self.rows) / 2
            f = np.where(random.random(self.rows) < 0.3, odd[random.integers(0, 5, self.rows)], numbers)
            absent = random.random((3, self.rows)) < self.nulls
            tables[name] = pa.table(
                {
                    "k": pa.array(random.integers(0, self.keys, self.rows), mask=absent[0]),
                    "j": pa.array(random.integers(0, self.keys, self.rows), mask=absent[1]),
                    "f": pa.array(f, pa.float64(), mask=absent[2]),
                    "v": random.integers(0, 10**9, self.rows),
                    "ts": pa.array(times, pa.timestamp("us")),
                }
            )
        return tables


def events(made: Any, kind: type) -> list[Any]:
    return [event for event in made.events if isinstance(event, kind)]


def first_step(made: Any) -> int:
    """The comparisons that a migration makes in its first step and that would not be made without it."""
    ended, going = events(made, MigrationEnded), events(made, MigrationProgressed)
    return int(going[0].detail["comparisons"] if going else ended[0].comparisons)


@pytest.mark.parametrize("stairs", [False, True])
def test_a_band_completes_only_the_ranges_that_probes_touch(stairs: bool) -> None:
    """§4 for ranges: the first step makes a small part of moving state's comparisons; the rest come as rows ask."""
    old, new = (STAIRS[OLD], STAIRS[NEW]) if stairs else (OLD, NEW)
    case = Run(BAND, plan=old)
    _, expected = case.go(46)
    moving, found = case.go(46, {24: (new, "stairs" if stairs else "moving_state", {})})
    assert found == expected
    made, found = case.go(46, {24: (new, "jisc_stairs" if stairs else "jisc", {})})
    assert found == expected
    whole = sum(event.comparisons for event in events(moving, MigrationEnded)) or worked(moving)[24] - worked(made)[24]
    assert 0 < first_step(made) <= whole / 4
    (ended,) = events(made, MigrationEnded)
    assert ended.comparisons < whole
    work = [event.detail["comparisons"] for event in events(made, MigrationProgressed)]
    assert work == sorted(work)
    assert work[-1] > work[0]
    left = [int(event.phase.split(", ")[1].split()[0]) for event in events(made, MigrationProgressed)]
    assert left == sorted(left, reverse=True)


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("A.k = B.k AND B.j * C.k < 40 AND C.k = D.k", 4),
        ("A.k = B.k AND B.j + 3 * C.k < 20 AND C.j * D.k < 60", 4),
        ("A.j <> B.j AND B.k = C.k AND C.j = D.j", 1),
    ],
)
def test_another_condition_completes_only_the_rows_that_it_finds(condition: str, part: int) -> None:
    case = Run(condition, keys=40, rows=4)
    _, expected = case.go(44)
    moving, found = case.go(44, {22: ("(A ((C D) B))", "moving_state", {})})
    assert found == expected
    made, found = case.go(44, {22: ("(A ((C D) B))", "jisc", {})})
    assert found == expected
    (whole,) = events(moving, MigrationEnded)
    # A condition that nearly all pairs satisfy leaves nothing to save; to find that out costs a row's pairs at most.
    assert 0 < first_step(made) <= whole.comparisons / part + 4 * 4 * 21


def test_a_condition_over_the_whole_state_completes_the_whole_state() -> None:
    """B.k + C.k < D.k: no row of B or C alone says whether a new row of D can meet it."""
    case = Run("A.k = B.k AND A.j = C.j AND B.k + C.k < D.k", keys=12, rows=2, window=8)
    _, expected = case.go(24)
    made, found = case.go(24, {10: ("(A ((B C) D))", "jisc", {})})
    assert found == expected
    # BC is complete at once; BCD, which A probes by a key, is not.
    assert events(made, MigrationProgressed)[0].phase.startswith("1 of 2 states incomplete")


CONDITIONS = [
    BAND.replace("10", "1"),
    "A.k - B.k BETWEEN -2 AND 0 AND B.j - C.j BETWEEN 0 AND 1 AND C.k < D.k",
    "A.f - B.f BETWEEN -1 AND 0.5 AND ABS(B.f - C.f) <= 1.5 AND C.k = D.k",
    "A.f <= B.f AND B.k = C.k AND ABS(C.f - D.f) < 0.5",
    "A.k = B.k AND B.j * C.k < 9 AND C.j * D.k < 12",
    "A.j <> B.k AND ABS(B.k - C.k) <= 1 AND C.j * A.k > 5 AND C.k = D.k",
    "A.k + B.k < C.k AND C.k = D.k AND ABS(A.j - D.j) <= 2",
    "ABS(A.k - B.k) <= 2 AND B.k = C.k AND ABS(A.j - D.j) <= 1 AND C.f < D.f",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(("nulls", "background"), [(0.0, 0), (0.25, 25)])
def test_migrations_overlap_and_lead_back(condition: str, nulls: float, background: int, tmp_path: Any) -> None:
    case = Run(condition, keys=7, rows=2, window=6, nulls=nulls)
    _, expected = case.go(20)
    options = {"background": background}
    moves: dict[int, tuple[str, str, dict[str, Any]]] = {
        5: (NEW, "jisc", options),
        7: ("((A C) (B D))", "jisc", options),
        8: ("(((D B) C) A)", "jisc", options),
        9: ("((A B) (C D))", "hybmig", {}),
        10: (OLD, "jisc", {**options, "decompose": False}),
        12: ("((A B) (D C))", "jisc", options),
    }
    made, found = case.go(20, moves, saved=tmp_path)
    assert found == expected
    assert sum(found, Counter())
    assert len(events(made, MigrationEnded)) == len(moves)
