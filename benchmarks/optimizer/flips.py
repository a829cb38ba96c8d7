"""Flips that multiply a step's work by five or more: how many steps later does a migration begin?

A query runs by a plan that is as good as any until the flip. Then the streams that it joins first have many partners,
because all their keys are few, or because a hot key comes. A drawn flip counts where that plan's work in a step becomes
five times what it was, and where another plan does at most half from then on. `auto` may have left that plan before:
steps are counted from where its own work becomes five times what it was, and a flip that it neither feels nor answers
does not count.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.optimizer.family import SPARSE, Case, Run, constant
from benchmarks.optimizer.trace import UNITS
from benchmarks.verdict import Verdict
from midstream.optimizer.search.greedy import left_deep
from midstream.review.review_price import ANY_STEP

SEEDS = {"training": range(5000, 5060), "test": range(8500, 8560)}
TIMES, BETTER = 5, 0.5  # so many times a step's work before; another plan does this share
ANSWERED = 0.95  # the share of flips that must be answered in time
STEPS, PATIENT = 5, 0.1  # so many steps, or this share of the window, whichever is longer
DRAWN, ROW = (8.0, 30.0), 500.0  # so many times the least work of a step is done by rows of a join, in ns each


class Flip(Case):
    """A case in which no row of one phase has partners in another, so that all plans do little while one passes."""

    def batch(self, step: int) -> dict[str, pa.Table]:
        """Return the rows of a step."""
        keys = pa.scalar(10**9 * (step // self.phase))
        return {
            stream: table.set_column(1, "k", pc.add(table["k"], keys)) for stream, table in super().batch(step).items()
        }


def drawn(seed: int) -> Case:
    """Draw a flip between two phases."""
    rng = np.random.default_rng([47, seed])
    streams = "ABCDEF"[: int(rng.choice([3, 3, 3, 4, 4, 5, 6]))]
    window = int(rng.choice([5, 10, 20, 50]))
    rate = int(np.exp(rng.uniform(np.log(50), np.log(1000 if window < 50 else 200))))
    pairs = list(pairwise(streams))
    dense = tuple(frozenset(pairs[at]) for at in rng.permutation(len(pairs))[:2])
    sql = f"SELECT A.id FROM {', '.join(streams)} WHERE {' AND '.join(f'{a}.k = {b}.k' for a, b in pairs)}"
    least = ANY_STEP + UNITS.operator_step * (len(streams) - 1)
    partners = least * float(rng.uniform(*DRAWN)) / ROW / rate, float(rng.uniform(*SPARSE))
    kind = str(rng.choice(["flip", "flip", "skew"]))
    return Flip(seed, kind, streams, "equal", sql, 1, window, rate, max(2 * window, 30), dense, partners)


def answer(case: Case) -> tuple[int, int | None] | None:
    """Return after how many steps the work is five times what it was, and after how many `auto` begins to move.

    None: it is no such flip, or none for the plan that `auto` runs by.
    """
    first = [*case.dense[::-1], *map(frozenset, zip(case.streams, case.streams[2:], strict=False))]
    plans = [left_deep([*sorted(pair), *(s for s in case.streams if s not in pair)]).notation() for pair in first[:3]]
    start, *others = case.runs([(plan, "off") for plan in plans])
    flip, least = case.phase, constant(case)

    def large(run: Run) -> int | None:
        steps = run.work + least
        found = np.flatnonzero(steps[flip:] >= TIMES * np.median(steps[flip // 2 : flip]))
        return flip + int(found[0]) if len(found) else None

    at = large(start)
    if at is None or min((run.work[at:] + least).sum() for run in others) > BETTER * (start.work[at:] + least).sum():
        return None
    (auto,) = case.runs([(plans[0], "auto")])
    moved, own = next((move - flip for move in auto.moves if move >= flip), None), large(auto)
    if own is None and moved is None:
        return None
    return (at if own is None else own) - flip, moved


def in_time(case: Case, at: int, moved: int | None) -> bool:
    """Return whether a migration began soon enough after the work was five times what it was."""
    return moved is not None and moved - at <= max(STEPS, PATIENT * case.window)


def main(which: str, cases: int) -> list[Verdict]:
    """Run drawn flips, print a line for each, and return what is required."""
    found, timely = 0, 0
    print("\n| seed | drift | streams | window | rows | five times the work after | a migration after | in time |")
    print("|" + 8 * "---|")
    for seed in SEEDS[which][:cases]:
        case = drawn(seed)
        if (one := answer(case)) is None:
            continue
        at, moved = one
        soon = in_time(case, at, moved)
        found, timely = found + 1, timely + soon
        print(
            f"| {seed} | {case.kind} | {len(case.streams)} | {case.window} | {case.rate} | {at} "
            f"| {'never' if moved is None else moved} | {'yes' if soon else 'no'} |",
            flush=True,
        )
    what = f"flips that multiply a step's work by {TIMES}, answered in time"
    return [Verdict(what, f"{timely} of {found}", f"at least {ANSWERED:.0%}", timely >= ANSWERED * found)]
