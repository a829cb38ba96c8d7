"""What the lab reads out of the engine's counters is what Wang's operators do tuple by tuple."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from midstream.lab.generator import Workload
from midstream.lab.wang_engine import (
    PARTS,
    SEED,
    TICK,
    Tally,
    WangSetting,
    chain,
    mem_opt,
    pull_up,
    push_down,
    small_large,
    tally,
)
from midstream.model.window import SECOND

FILTERED = WangSetting((2, 5, 9), rate=4.0, s_sigma=0.4, s_join=0.3, run=30.0)
PLAIN = WangSetting((1, 2, 3, 8, 9), rate=4.0, s_sigma=1.0, s_join=0.3, run=30.0)


@dataclass(frozen=True)
class Tuples:
    """A setting's rows, A's as (time, u, whether it passes), B's as (time, u), and the pairs by age."""

    a: list[tuple[int, int, bool]]
    b: list[tuple[int, int]]
    windows: list[int]
    join: int

    def pairs(self, window: int, part: bool | None = None, *, joined: bool = False) -> int:
        """Pairs that live to meet within a window, of all rows of A or of one part; only those that join."""
        return sum(
            abs(ts - other) <= window and (not joined or (u + v) % PARTS < self.join)
            for ts, u, passes in self.a
            if part is None or part is passes
            for other, v in self.b
        )

    def results(self, window: int, part: bool | None = None) -> int:
        return self.pairs(window, part, joined=True)


def tuples(setting: WangSetting) -> Tuples:
    arrivals = Workload(setting.sources, "", SEED).arrivals(setting.until)
    a, b = (list(zip(rows.times, *(rows.rows[c].to_pylist() for c in "uv"), strict=True)) for rows in arrivals.values())
    passing = {v for *_, v in sorted(a, key=lambda row: row[2])[: tally(setting, "mem_opt").passing]}
    windows = [int(w * setting.pace * SECOND) for w in setting.windows]
    return Tuples(
        [(int(ts), u, v in passing) for ts, u, v in a],
        [(int(ts), u) for ts, u, _ in b],
        windows,
        round(setting.s_join * PARTS),
    )


@pytest.fixture(scope="module")
def rows() -> Tuples:
    return tuples(FILTERED)


@pytest.fixture(scope="module")
def runs() -> dict[str, Tally]:
    return {mode: tally(FILTERED, mode) for mode in ("mem_opt", "pull_up", "push_down")}


def test_the_filter_passes_the_share_it_is_to(rows: Tuples, runs: dict[str, Tally]) -> None:
    assert sum(passes for *_, passes in rows.a) == runs["mem_opt"].passing
    assert abs(runs["mem_opt"].passing - FILTERED.s_sigma * len(rows.a)) <= 1


def test_every_way_delivers_the_same(rows: Tuples, runs: dict[str, Tally]) -> None:
    narrow, *wider = rows.windows
    expected = (rows.results(narrow), *(rows.results(window, True) for window in wider))
    assert {run.delivered for run in runs.values()} == {expected}


def test_pull_up(rows: Tuples, runs: dict[str, Tally]) -> None:
    _, middle, wide = rows.windows
    assert pull_up(runs["pull_up"], FILTERED.filtered).cpu == {
        "probe": rows.pairs(wide),
        "purge": len(rows.a) + len(rows.b),
        "route": 2 * rows.results(wide),
        "filter": rows.results(middle) + rows.results(wide),
    }


def test_push_down(rows: Tuples, runs: dict[str, Tally]) -> None:
    narrow, _, wide = rows.windows
    assert push_down(runs["push_down"], FILTERED.filtered).cpu == {
        "split": len(rows.a),
        "probe": rows.pairs(narrow, False) + rows.pairs(wide, True),
        "purge": len(rows.a) + 2 * len(rows.b),
        "route": 2 * rows.results(wide, True),
        "union": rows.results(narrow),
    }


def test_mem_opt(rows: Tuples, runs: dict[str, Tally]) -> None:
    narrow, _, wide = rows.windows
    passing = sum(passes for *_, passes in rows.a)
    cpu = dict(mem_opt(runs["mem_opt"], FILTERED.filtered).cpu)
    # The first slice, and behind the filter the others; filters spare whole chunks, which are as old as two steps.
    selected = rows.pairs(narrow) + rows.pairs(wide, True) - rows.pairs(narrow, True)
    assert selected <= cpu.pop("probe") <= 1.1 * selected
    assert cpu == {
        "purge": len(rows.a) + len(rows.b) + 2 * (passing + len(rows.b)),
        "union": 2 * (len(rows.a) + len(rows.b)),
        "filter": len(rows.a) + 2 * rows.results(narrow),
    }


def test_the_states_hold_what_some_query_selects(rows: Tuples, runs: dict[str, Tally]) -> None:
    """Theorem 6 for Mem-Opt; all for the widest window in pull-up; B once for each part of A in push-down."""
    narrow, *_, wide = rows.windows
    held: dict[str, list[int]] = {mode: [] for mode in runs}
    for number in range(int(FILTERED.until / TICK)):
        end = (number + 1) * TICK * SECOND
        if end <= wide:
            continue
        heard = min(max(row[0] for row in side if row[0] < end) for side in (rows.a, rows.b))

        def alive(ts: int, window: int, heard: int = heard, end: float = end) -> bool:
            return ts < end and ts + window >= heard

        b_wide, b_narrow = (sum(alive(ts, window) for ts, _ in rows.b) for window in (wide, narrow))
        a_least = sum(alive(ts, wide if passes else narrow) for ts, _, passes in rows.a)
        held["mem_opt"].append(a_least + b_wide)
        held["pull_up"].append(sum(alive(ts, wide) for ts, *_ in rows.a) + b_wide)
        held["push_down"].append(a_least + b_wide + b_narrow)
    assert {mode: run.state_rows for mode, run in runs.items()} == {m: sum(h) / len(h) for m, h in held.items()}


@pytest.mark.parametrize("cuts", [(1, 2, 3, 4, 5), (3, 5), (5,), (2, 3, 5)])
def test_merged_slices(cuts: tuple[int, ...]) -> None:
    rows, run = tuples(PLAIN), tally(PLAIN, "mem_opt")
    within = [0, *(rows.results(window) for window in rows.windows)]
    every = len(rows.a) + len(rows.b)
    assert chain(run, cuts, c_sys=2.0).cpu == {
        "probe": rows.pairs(rows.windows[-1]),
        "purge": every * len(cuts),
        "system": 2 * every * len(cuts),
        "route": sum((within[j] - within[i]) * (j - i - 1) for i, j in pairwise((0, *cuts))),
        "union": every * (5 - cuts[0]),
    }


def test_no_count_hangs_on_the_steps(runs: dict[str, Tally]) -> None:
    for mode, run in runs.items():
        other = tally.__wrapped__(replace(FILTERED, tick=10.0), mode)
        # What filters spare of probes they spare chunk by chunk, and steps make chunks.
        left_out = {"state_rows": 0} if mode in ("pull_up", "push_down") else {"state_rows": 0, "probed": 0, "found": 0}
        # What slices cost the engine is paid by steps.
        left_out |= {"moved": 0, "boundaries": 0}
        assert {**vars(other), **left_out} == {**vars(run), **left_out}


def test_small_large_windows_of_more_queries() -> None:
    windows = small_large(36)
    assert len(windows) == 36 and windows == tuple(sorted(windows))
    assert (windows[17], windows[-1]) == (6, 30) and windows[18] > 24
