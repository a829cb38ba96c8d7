"""A family of drifts, drawn at random: how near `auto` comes to the best schedule of plans on what nobody tuned it to.

`python -m benchmarks.optimizer.family [--set training|test] [--all]` draws cases by seed, runs each with `auto` and
with every plan of a small set, and prints a table. The best schedule has in each phase the plan that did least there,
and moves for nothing: no real schedule is better. Figures are counted work with migrations and reviews in it, so that
they are the same on a busy machine; seconds are printed beside, and mean little on one. Then come flips, moves, streams
on which no other plan is better to stay, and the longest pushes; at the end stands what is required beside what was
found. Without `--all` the parts that take long have fewer cases, and `--cases` gives all parts as many.

To be over in minutes a case has three phases and at most three plans beside those that `auto` visits. Most cases have
windows of 5 to 20 steps, at most two queries and 3,000 rows of a stream alive: there is little to gain in them. Of the
seeds from `LARGE_FROM` on every third one has a window of 50 to 500 steps, 1,000 to 10,000 rows of each stream a step,
or a chain of 5 to 50 queries whose windows and filters differ.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa

import midstream as ms
from benchmarks.optimizer.trace import UNITS, work_of
from benchmarks.verdict import Verdict, verdict_table
from midstream.model.events import MigrationBegun, PlanReviewed
from midstream.model.optimization import OptimizerSettings
from midstream.optimizer.search.greedy import left_deep
from midstream.review.review_price import ANY_STEP, price

SECOND = 1_000_000
Figures = np.ndarray[tuple[int], np.dtype[np.float64]]
SEEDS = {"training": range(1, 43), "test": range(5401, 5431)}  # FAMILY.md lists those that were seen
LARGE_FROM, LARGE = 31, ("window", "rows", "queries")  # From this seed on every third case is large.
KINDS = ("flip", "ramp", "season", "burst", "skew", "stop", "steady")
MOST_PLANS, MOST_ROWS, PHASES = 3, 3_000, 3  # rows alive in a stream
HOT_ROWS = 300  # rows of one hot key alive in a stream, at most
EFFORT = OptimizerSettings().effort
ABOVE = 1.05  # no case may do so many times the work of its best fixed plan
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
        """Draw the case of a seed: a small one, or of `LARGE_FROM` on every third one a large one."""
        case = Case.small(seed)
        return case.large() if seed >= LARGE_FROM and seed % 3 == 0 else case

    def large(self) -> Case:
        """Draw a long window, many rows a step, or a chain of many queries instead."""
        rng = np.random.default_rng([51, self.seed])
        match LARGE[self.seed // 3 % len(LARGE)]:
            case "window":
                window = int(np.exp(rng.uniform(np.log(50), np.log(500))))
                rate = min(self.rate, int(rng.integers(5, 60)))
                return replace(self, window=window, rate=rate, phase=max(2 * window, 30))
            case "rows":
                rate = int(np.exp(rng.uniform(np.log(1_000), np.log(10_000))))
                return replace(self, window=5, rate=rate, phase=30)
        return replace(self, queries=int(np.exp(rng.uniform(np.log(5), np.log(50)))))

    @staticmethod
    def small(seed: int) -> Case:
        """Draw the case of a seed with at most two queries, windows of 5 to 20 steps and `MOST_ROWS` alive."""
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
                hottest = min(0.1, HOT_ROWS / (self.rate * self.window))  # Their pairs grow with the square.
                hot = rng.random(rows) < (hottest if stream in self.dense[step // self.phase] else 0.0)
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

    def engine(self, plan: str, mode: str, effort: float = EFFORT) -> ms.Engine:
        """Make an engine that begins by a plan, kept or not; reviews may take a share of all work, the effort."""
        engine = ms.Engine(seed=1)
        for stream in self.streams:
            engine.create_stream(stream, "id BIGINT, k BIGINT, j BIGINT, ts TIMESTAMP", timestamp="ts")
        for at in range(self.queries):
            more = f" AND A.j >= {at}" if self.queries > 2 and at % 2 else ""  # A chain of windows and filters.
            window = max(self.window - at, 2)
            engine.add_query(f"q{at}", f"{self.sql}{more} WINDOW {window} SECONDS", plan=plan)
        engine.optimize(mode=mode, effort=effort)
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


def constant(case: Case) -> float:
    """Return what a step of a case takes at least, in nanoseconds, whatever plan runs."""
    return ANY_STEP + UNITS.operator_step * (len(case.streams) - 1)


def outcome(seed: int) -> Outcome:
    """Run a case."""
    case = Case.drawn(seed)
    plans = case.plans()
    start = plans[seed % len(plans)]
    auto, *others = case.runs([(start, "auto"), *((plan, "off") for plan in plans)])
    kept = dict(zip(plans, others, strict=True))
    more = [plan for plan in auto.visited if plan not in kept]
    kept |= zip(more, case.runs([(plan, "off") for plan in more]), strict=True)
    work, seconds = (
        np.array([figures.reshape(len(case.dense), case.phase).sum(axis=1) for figures in found])
        for found in ([run.work for run in kept.values()], [run.seconds for run in kept.values()])
    )
    best, fixed = work.argmin(axis=0), work.sum(axis=1).argmin()
    least = work.min(axis=0).sum() + constant(case) * case.steps
    whole = auto.work.sum() + auto.reviewing + constant(case) * case.steps
    of_best, of_fixed = seconds[best, range(len(best))].sum(), seconds[fixed].sum()
    return Outcome(
        case, auto, whole / least, whole / (work[fixed].sum() + constant(case) * case.steps),
        auto.seconds.sum() / of_best, auto.seconds.sum() / of_fixed, auto.reviewing / whole,
    )  # fmt: skip


def at_most(what: str, found: float, most: float) -> Verdict:
    """Require that a ratio is at most so much."""
    return Verdict(what, f"{found:.2f}", f"at most {most}", found <= most)


def drifts(seeds: Sequence[int]) -> tuple[list[Outcome], list[Verdict]]:
    """Run cases, print a line for each, and return what came of them and what is required of all."""
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
    required = list[Verdict]()
    for name, ratios in (
        ("work", [one.by_best for one in found]),
        ("seconds", [one.seconds_by_best for one in found]),
    ):
        for what, share, most in (("median", 0.5, 1.1), ("95th percentile", 0.95, 1.35), ("worst", 1.0, 1.6)):
            ratio = float(np.quantile(ratios, share))
            required.append(at_most(f"drifts, {name} by the best schedule's, {what}", ratio, most))
    above = [one.by_fixed for one in found if one.by_fixed > ABOVE]
    what, most = f"drifts, above {ABOVE} of the best fixed plan's work", max([1.0, *above])
    required.append(Verdict(what, f"{len(above)} of {len(found)}, up to {most:.2f}", "none", not above))
    still = [one.by_fixed for one in found if one.case.kind == "steady"]
    required.append(at_most("drifts, work where nothing drifts, worst", max([1.0, *still]), 1.03))
    share = float(np.mean([one.reviewing for one in found]))
    required.append(Verdict("drifts, reviews of all work, mean", f"{share:.1%}", "at most 3%", share <= 0.03))
    return found, required


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
    """Run every part, or one of them; draw the picture; print what is required beside what was found."""
    from benchmarks.optimizer import flips, longest, moves, staying

    parser = argparse.ArgumentParser()
    parser.add_argument("--set", choices=SEEDS, default="test")
    parser.add_argument("--all", action="store_true", help="every case, for as long as it takes")
    parser.add_argument("--cases", type=int, help="so many cases of each part")
    parser.add_argument("--first", type=int, help="the seed of the first drift, where it is of neither set")
    parser.add_argument("--only", choices=["drifts", "flips", "moves", "staying", "longest"])
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    first = Case.drawn(0)
    first.runs([(first.plans()[0], "auto")])  # What a process does only once is not timed.
    required = list[Verdict]()

    def cases(part: str, few: int, every: int) -> int:
        return 0 if given.only not in (None, part) else given.cases or (every if given.all else few)

    if count := cases("drifts", *[len(SEEDS[given.set])] * 2):
        seeds = SEEDS[given.set] if given.first is None else range(given.first, given.first + count)
        found, judged = drifts(seeds[:count])
        required += judged
        if given.picture:
            draw(found, given.picture)
    if count := cases("flips", 12, 60):
        required += flips.main(given.set, count)
    if count := cases("moves", 30, 200):
        required += moves.main(given.set, count)
    if count := cases("staying", 4, 12):
        required += staying.main(given.set, count, *((600, 5_000) if given.all else (200, 500)))
    if count := cases("longest", 11, 11):
        longest.main(given.set, count)
    print(f"\n{verdict_table(required)}", end="")


if __name__ == "__main__":
    main()
