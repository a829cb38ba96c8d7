"""A family of drifts, drawn at random: how near `auto` comes to the best schedule of plans on what nobody tuned it to.

`python -m benchmarks.optimizer.family [--set training|test] [--cases N]` draws cases by seed, runs each with `auto`
and with every plan of a small set, prints a table and writes a picture. The best schedule has in each phase the plan
that did least there, and moves for nothing: no real schedule is better. Figures are counted work with migrations and
reviews in it, so that they are the same on a busy machine; seconds are printed beside, and mean little on one.

To be over in minutes a case has three phases, at most three plans beside those that `auto` visits, windows of 5 to 20
steps and at most 3,000 rows of a stream alive: most cases are small, and there is little to gain in them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa

import midstream as ms
from benchmarks.optimizer.trace import UNITS, work_of
from midstream.model.events import MigrationBegun, PlanReviewed
from midstream.optimizer.search.greedy import left_deep
from midstream.step.reviewing.review_price import ANY_STEP, price

SECOND = 1_000_000
Figures = np.ndarray[tuple[int], np.dtype[np.float64]]
SEEDS = {"training": range(1000, 1040), "test": range(1, 31)}
KINDS = ("flip", "ramp", "season", "burst", "skew", "stop", "steady")
MOST_PLANS, MOST_ROWS, PHASES = 3, 3_000, 3  # rows alive in a stream
DENSE, SPARSE = (2.0, 5.0), (0.01, 0.1)  # partners that a row of one stream has in the window of another


@dataclass(frozen=True)
class Case:
    """One drift: the dense streams of each phase, and what the kind makes of it."""

    seed: int
    kind: str
    streams: str
    on: str
    sql: str
    queries: int
    window: int
    rate: int
    phase: int
    dense: tuple[frozenset[str], ...]
    partners: tuple[float, float]

    @staticmethod
    def drawn(seed: int) -> Case:
        """Draw the case of a seed."""
        rng = np.random.default_rng([46, seed])
        kind = KINDS[seed % len(KINDS)]
        streams = "ABCDEFGH"[: int(rng.choice([3, 3, 4, 4, 5, 6, 8]))]
        window = int(rng.choice([5, 10, 20]))
        rate = int(np.exp(rng.uniform(np.log(10), np.log(1500))) / len(streams) * 3)
        while rate * window > MOST_ROWS:
            rate //= 2
        phase, on = max(2 * window, 30), str(rng.choice(["equal", "equal", "two_keys", "band"]))
        pairs = list(pairwise(streams))
        if on == "two_keys" and len(pairs) > 1:
            conditions = [f"{a}.{'kj'[i % 2]} = {b}.{'kj'[i % 2]}" for i, (a, b) in enumerate(pairs)]
        elif on == "band":
            conditions = [f"{a}.k BETWEEN {b}.k - 1 AND {b}.k + 1" for a, b in pairs]
        else:
            conditions = [f"{a}.k = {b}.k" for a, b in pairs]
        sql = f"SELECT A.id FROM {', '.join(streams)} WHERE {' AND '.join(conditions)}"
        phases = 1 if kind == "steady" else PHASES
        dense = [frozenset(pairs[int(rng.integers(0, len(pairs)))])]
        while len(dense) < phases:
            following = frozenset(pairs[int(rng.integers(0, len(pairs)))])
            if following != dense[-1]:
                dense.append(following)
        if kind == "steady":
            dense *= PHASES
        partners = float(rng.uniform(*DENSE)), float(rng.uniform(*SPARSE))
        queries = int(rng.choice([1, 1, 1, 2]))
        return Case(seed, kind, streams, on, sql, queries, window, max(rate, 5), phase, tuple(dense), partners)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.phase * len(self.dense)

    def density(self, stream: str, step: int) -> float:
        """The partners of a row in the window of another stream of as many keys."""
        at, inside = divmod(step, self.phase)
        here, after = self.dense[at], self.dense[min(at + 1, len(self.dense) - 1)]
        one, other = (self.partners[0 if stream in some else 1] for some in (here, after))
        if self.kind == "ramp":
            return float(np.exp(np.interp(inside / self.phase, [0.3, 1], np.log([one, other]))))
        if self.kind == "season":
            return float(np.exp(np.interp((1 - np.cos(np.pi * inside / self.phase)) / 2, [0, 1], np.log([one, other]))))
        return one

    def batch(self, step: int) -> dict[str, pa.Table]:
        """Return the rows of a step."""
        rng, found = np.random.default_rng([self.seed, step]), {}
        for at, stream in enumerate(self.streams):
            rows = self.rate * (4 if self.kind == "burst" and (step // 7) % 5 == at % 5 else 1)
            if self.kind == "stop" and at == (step // self.phase) % len(self.streams) and step % self.phase > 5:
                rows = 0
            keys = max(int(self.rate * self.window / self.density(stream, step)), 2) * (3 if self.on == "band" else 1)
            columns = {name: rng.integers(0, keys, rows) for name in "kj"}
            if self.kind == "skew":
                hot = rng.random(rows) < (0.1 if stream in self.dense[step // self.phase] else 0.0)
                columns = {name: np.where(hot, 1, values) for name, values in columns.items()}
            times = np.sort(rng.integers(step * SECOND, (step + 1) * SECOND, rows))
            found[stream] = pa.table(
                {"id": np.arange(rows) + step * 10**6, **columns, "ts": pa.array(times, pa.timestamp("us"))}
            )
        return found

    def plans(self) -> list[str]:
        """A small set of plans: left-deep ones that begin with each pair that is tied together."""
        found = []
        for a, b in pairwise(self.streams):
            order, left = [a, b], [one for one in self.streams if one not in (a, b)]
            while left:  # Those next to what is joined come first: no needless cross product.
                order.append(min(left, key=lambda s: min(abs(ord(s) - ord(o)) for o in order)))
                left.remove(order[-1])
            found.append(left_deep(order).notation())
        if len(self.streams) > 2 and self.on == "equal":
            found += [left_deep([a, b, *(s for s in self.streams if s not in (a, b))]).notation()
                      for a, b in zip(self.streams, self.streams[2:], strict=False)]  # fmt: skip
        return found[:MOST_PLANS]

    def engine(self, plan: str, mode: str) -> ms.Engine:
        """Make an engine that begins by a plan, kept or not."""
        engine = ms.Engine(seed=1)
        for stream in self.streams:
            engine.create_stream(stream, "id BIGINT, k BIGINT, j BIGINT, ts TIMESTAMP", timestamp="ts")
        for at in range(self.queries):
            engine.add_query(f"q{at}", f"{self.sql} WINDOW {max(self.window - at, 2)} SECONDS", plan=plan)
        engine.optimize(mode=mode)
        return engine

    def runs(self, modes: Sequence[tuple[str, str]]) -> list[Run]:
        """Run by plans in modes: each step is done by all of them, one after the other, from another one on."""
        engines = [self.engine(plan, mode) for plan, mode in modes]
        work, seconds = np.zeros((2, len(engines), self.steps))
        for step in range(self.steps):
            batch = self.batch(step)
            for turn in range(len(engines)):
                at = (step + turn) % len(engines)
                before, begun = work_of(engines[at].manifest.totals), time.process_time()
                engines[at].push(batch)
                seconds[at, step] = time.process_time() - begun
                work[at, step] = work_of(engines[at].manifest.totals) - before
        return [Run.of(self, *done) for done in zip(engines, work, seconds, strict=True)]


@dataclass(frozen=True)
class Run:
    """What one run did: by step its work in nanoseconds, without reviews, and seconds of the processor's time.

    `reviewing` is what its reviews took, foreseen in nanoseconds.
    """

    work: Figures
    seconds: Figures
    reviewing: float
    reviews: list[int]
    moves: list[int]
    visited: tuple[str, ...]

    @staticmethod
    def of(case: Case, engine: ms.Engine, work: Figures, seconds: Figures) -> Run:
        """Take from an engine's events what it decided."""
        reviews = [e.step for e in engine.events if isinstance(e, PlanReviewed)]
        moves = [e for e in engine.events if isinstance(e, MigrationBegun)]
        reviewing = len(reviews) * price(len(case.streams), case.rate * case.window * len(case.streams))
        visited = tuple(dict.fromkeys(e.new for e in moves))
        return Run(work, seconds, reviewing, reviews, [e.step for e in moves], visited)


@dataclass(frozen=True)
class Outcome:
    """How `auto` came off: its work and its seconds by those of the best schedule and of the best fixed plan."""

    case: Case
    auto: Run
    by_best: float
    by_fixed: float
    seconds_by_best: float
    seconds_by_fixed: float
    reviewing: float


def outcome(seed: int) -> Outcome:
    """Run a case."""
    case = Case.drawn(seed)
    plans = case.plans()
    start = plans[seed % len(plans)]
    auto, *others = case.runs([(start, "auto"), *((plan, "off") for plan in plans)])
    kept = dict(zip(plans, others, strict=True))
    more = [plan for plan in auto.visited if plan not in kept]
    kept |= zip(more, case.runs([(plan, "off") for plan in more]), strict=True)
    constant = ANY_STEP + UNITS.operator_step * (len(case.streams) - 1)
    work, seconds = (
        np.array([figures.reshape(len(case.dense), case.phase).sum(axis=1) for figures in found])
        for found in ([run.work for run in kept.values()], [run.seconds for run in kept.values()])
    )
    best, fixed = work.argmin(axis=0), work.sum(axis=1).argmin()
    least = work.min(axis=0).sum() + constant * case.steps
    whole = auto.work.sum() + auto.reviewing + constant * case.steps
    of_best, of_fixed = seconds[best, range(len(best))].sum(), seconds[fixed].sum()
    return Outcome(
        case, auto, whole / least, whole / (work[fixed].sum() + constant * case.steps),
        auto.seconds.sum() / of_best, auto.seconds.sum() / of_fixed, auto.reviewing / whole,
    )  # fmt: skip


def drifts(seeds: Sequence[int]) -> list[Outcome]:
    """Run cases, print a line for each and what came of all."""
    found = list[Outcome]()
    print("\n| seed | drift | streams | on | queries | window | rows | reviews | moves | work by best | by fixed "
          "| seconds by best | by fixed |\n|" + 13 * "---|")  # fmt: skip
    for seed in seeds:
        one = outcome(seed)
        found.append(one)
        case, auto = one.case, one.auto
        print(
            f"| {seed} | {case.kind} | {len(case.streams)} | {case.on} | {case.queries} | {case.window} | {case.rate} "
            f"| {len(auto.reviews)} | {len(auto.moves)} | {one.by_best:.2f} | {one.by_fixed:.2f} "
            f"| {one.seconds_by_best:.2f} | {one.seconds_by_fixed:.2f} |",
            flush=True,
        )
    for name, ratios in (
        ("work by the best schedule's", [one.by_best for one in found]),
        ("seconds by the best schedule's", [one.seconds_by_best for one in found]),
        ("work by the best fixed plan's", [one.by_fixed for one in found]),
        ("seconds by the best fixed plan's", [one.seconds_by_fixed for one in found]),
        ("work where nothing drifts", [one.by_fixed for one in found if one.case.kind == "steady"]),
    ):
        median, most, above = np.quantile(ratios, 0.5), np.quantile(ratios, 0.95), sum(one > 1.05 for one in ratios)
        print(
            f"{name}: median {median:.2f}, 95th percentile {most:.2f}, worst {max(ratios):.2f}, "
            f"above 1.05 in {above} of {len(ratios)}"
        )
    print(f"reviews: {np.mean([one.reviewing for one in found]):.1%} of the work on average")
    return found


def draw(found: Sequence[Outcome], path: Path) -> None:
    """Draw the share of cases by their ratio to the best schedule."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.2))
    for name, ratios in (
        ("work", [one.by_best for one in found]),
        ("seconds", [one.seconds_by_best for one in found]),
    ):
        axes.plot(np.sort(ratios), (np.arange(len(ratios)) + 1) / len(ratios), drawstyle="steps-post", label=name)
    axes.set(xlabel="auto / the best schedule", ylabel="share of cases", ylim=(0, 1))
    axes.set_title("Drifts drawn at random, none of them tuned to")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Run a set of cases and draw the picture; then run flips and moves, and time the longest pushes."""
    from benchmarks.optimizer import flips, longest, moves

    parser = argparse.ArgumentParser()
    parser.add_argument("--set", choices=SEEDS, default="test")
    parser.add_argument("--cases", type=int)
    parser.add_argument("--only", choices=["drifts", "flips", "moves", "longest"])
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    first = Case.drawn(0)
    first.runs([(first.plans()[0], "auto")])  # What a process does only once is not timed.
    if given.only in (None, "drifts"):
        found = drifts(SEEDS[given.set][: given.cases])
        if given.picture:
            draw(found, given.picture)
    for name, part in (("flips", flips.main), ("moves", moves.main), ("longest", longest.main)):
        if given.only in (None, name):
            part(given.set, given.cases)


if __name__ == "__main__":
    main()
