"""Streams on which no other plan is better to stay: nothing drifts, or whatever runs is soon the dearer plan.

Three streams are joined by their key, so that every tree is run and the best fixed plan is known. Figures are counted
work with migrations and reviews in it. An adversary sees the plan that runs and makes the pair that it joins first
dense from the next step on; on odd seeds the dense pair changes after a drawn number of steps, whatever runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import midstream as ms
from benchmarks.optimizer.family import EFFORT, Case, Run, at_most, constant
from benchmarks.optimizer.trace import work_of
from benchmarks.verdict import Verdict

SEEDS = {"training": range(3000, 3012), "test": range(7500, 7512)}
STREAMS = "ABC"
STEADY, FLAPPING = 1.03, 1.3  # so many times the work of the best fixed plan

Dense = Callable[[int, ms.Engine], frozenset[str]]
"""Which pair is dense in a step, where an engine is about to do it."""


def first_joined(engine: ms.Engine) -> frozenset[str]:
    """Return the streams that the running plan joins first, A and B where there is none or it is no tree."""
    entry = engine.manifest.queries.get("q0")
    pair = re.search(r"\((\w) (\w)\)", entry.plan if entry is not None else "")
    return frozenset(pair.groups() if pair else "AB")


def drawn(seed: int) -> tuple[Case, Dense]:
    """Draw streams that flap, and how."""
    rng = np.random.default_rng([50, seed])
    window, rate = int(rng.choice([5, 10, 20])), int(np.exp(rng.uniform(np.log(50), np.log(400))))
    pairs = [frozenset("AB"), frozenset("BC")]
    period, partners = max(int(window * rng.uniform(0.3, 4)), 2), (float(rng.uniform(3, 12)), 0.05)
    sql = "SELECT A.id FROM A, B, C WHERE A.k = B.k AND B.k = C.k"
    case = Case(seed, "flip", STREAMS, "equal", sql, 1, window, rate, 1, (pairs[0],), partners)

    def seen(step: int, engine: ms.Engine) -> frozenset[str]:
        return first_joined(engine)

    def turned(step: int, engine: ms.Engine) -> frozenset[str]:
        return pairs[step // period % 2]

    return case, turned if seed % 2 else seen


def beside_trees(
    case: Case, dense: Dense, steps: int, start: str | None = None, effort: float = EFFORT
) -> tuple[Run, float]:
    """Run `auto` beside every tree on the rows that `auto` meets.

    Returns: the run, and its work divided by that of the best tree.
    """
    plans = case.plans()
    engines = [case.engine(start or plans[0], "auto", effort), *(case.engine(plan, "off") for plan in plans)]
    for step in range(steps):
        rows = replace(case, phase=steps, dense=(dense(step, engines[0]),)).batch(step)
        for engine in engines:
            engine.push(rows)
    auto, *trees = (work_of(engine.manifest.totals) for engine in engines)
    run, least = Run.of(case, engines[0], np.array([auto]), np.zeros(1)), constant(case) * steps
    return run, (auto + run.reviewing + least) / (min(trees) + least)


def flapping(seed: int, steps: int) -> tuple[Run, float]:
    """Run a case that flaps; return the run and its work by that of the best fixed plan."""
    case, dense = drawn(seed)
    return beside_trees(case, dense, steps)


def steady(seed: int, steps: int, effort: float = EFFORT) -> tuple[Run, float]:
    """Run a case in which nothing drifts, begun by the best plan; return the run and its work by that of this plan."""
    case, _ = drawn(seed)
    pair = (frozenset("AB"), frozenset("BC"))[seed % 2]
    start = case.plans()[1 - seed % 2]  # It joins the other pair first.
    return beside_trees(case, lambda step, engine: pair, steps, start, effort)


def main(which: str, cases: int, steps: int, steps_steady: int) -> list[Verdict]:
    """Run drawn cases, print a line for each, and return what is required."""
    print("\n| seed | course | window | rows | steps | reviews | moves | work by the best fixed plan |\n|" + 8 * "---|")
    worst, switches, ratios = 0.0, 0, list[float]()

    def line(seed: int, course: str, length: int, run: Run, ratio: float) -> None:
        case, _ = drawn(seed)
        print(f"| {seed} | {course} | {case.window} | {case.rate} | {length} | {len(run.reviews)} | {len(run.moves)} "
              f"| {ratio:.3f} |", flush=True)  # fmt: skip

    for seed in SEEDS[which][:cases]:
        run, ratio = flapping(seed, steps)
        worst = max(worst, ratio)
        line(seed, "turns" if seed % 2 else "adversary", steps, run, ratio)
    for seed in SEEDS[which][: max(cases // 4, 1)]:
        run, ratio = steady(seed, steps_steady)
        ratios.append(ratio)
        switches += len(run.moves)
        line(seed, "steady", steps_steady, run, ratio)
    still = f"steady for {steps_steady:,} steps"
    return [
        at_most("flapping, work by the best fixed plan's, worst", worst, FLAPPING),
        at_most(f"{still}, work by the best plan's, worst", max(ratios), STEADY),
        Verdict(f"{still}, switches", str(switches), "0", not switches),
    ]
