"""The chooser: how often is the strategy that `auto` takes nearly the best one in truth?

A query of 3 to 5 streams is on its way, at a drawn moment after a move or after none, and is to move to another plan.
Every strategy that can carries it there from the same state of affairs. For `work` the comparisons count that the
migration made beyond the plans' own; for `latency` its longest silence: the most comparisons that one of its steps made
beyond a usual one's. The strategy taken hits if it is within 1.3 of the least.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

import midstream as ms
from benchmarks.verdict import Verdict
from midstream.migration.strategy_contract import discovered
from midstream.model.errors import MidstreamError
from midstream.model.events import MigrationBegun, MigrationEnded
from midstream.optimizer.search.greedy import left_deep

SECOND = 1_000_000
SEEDS = {"training": range(7000, 7200), "test": range(8200, 8400)}
WITHIN, FORESEEN = 1.3, 3.0
HITS = 0.9  # the share of moves in which the choice must hit
FEW = 100  # comparisons by which figures may differ where there is little to do
FIRST = ("moving_state", "jisc", "hybmig", "gms")


@dataclass(frozen=True)
class Move:
    """A state of affairs and a migration."""

    seed: int
    streams: str
    sql: str
    plans: tuple[str, str, str]
    first: str
    objective: str
    keys: tuple[int, ...]
    rate: int
    window: int
    gap: int

    @staticmethod
    def drawn(seed: int) -> Move:
        """Draw one; where `first` is empty the query has not moved before."""
        rng = np.random.default_rng([48, seed])
        streams = "ABCDE"[: int(rng.integers(3, 6))]
        columns = rng.choice(["k", "j"], len(streams) - 1) if rng.random() < 0.3 else ["k"] * (len(streams) - 1)
        window, few, rate = int(rng.integers(4, 12)), int(rng.integers(20, 80)), int(rng.integers(5, 30))
        on = " AND ".join(f"{a}.{c} = {b}.{c}" for (a, b), c in zip(pairwise(streams), columns, strict=True))
        sql = f"SELECT A.k, A.v FROM {', '.join(streams)} WHERE {on} WINDOW {window} SECONDS"
        plans = [left_deep(streams).notation()]
        while len(plans) < 3:
            if (plan := _tree(streams, rng)) != plans[-1]:
                plans.append(plan)
        return Move(
            seed, streams, sql, (plans[0], plans[1], plans[2]), str(rng.choice(["", *FIRST])),
            str(rng.choice(["work", "latency"])), tuple(int(rate * few / 20 * rng.uniform(0.6, 3)) for _ in streams),
            rate, window, int(rng.integers(1, window + 2)),
        )  # fmt: skip

    def rows(self, step: int) -> dict[str, pa.Table]:
        """Return the rows of a step."""
        rng, found = np.random.default_rng([self.seed, step]), {}
        for stream, keys in zip(self.streams, self.keys, strict=True):
            times = np.sort(rng.integers(step * SECOND, (step + 1) * SECOND, self.rate))
            columns = {name: rng.integers(0, keys, self.rate) for name in "kj"}
            found[stream] = pa.table({**columns, "v": np.arange(self.rate), "ts": pa.array(times, pa.timestamp("us"))})
        return found

    def run(self, strategy: str) -> Moved | None:
        """Move by a strategy; None where it cannot carry the query, or does not end within three windows."""
        engine, begin = ms.Engine(seed=self.seed), 2 * self.window
        for stream in self.streams:
            engine.create_stream(stream, "k BIGINT, j BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("q", self.sql, plan=self.plans[0] if self.first else self.plans[1])
        engine.optimize("q", mode="off")
        move, done, results, before = begin + self.gap, list[int](), list[int](), 0
        for step in range(move + 3 * self.window):
            if step == begin and self.first:
                engine.migrate("q", plan=self.plans[1], strategy=self.first)
            if step == move and strategy:
                options: dict[str, Any] = {"objective": self.objective} if strategy == "auto" else {}
                try:
                    engine.migrate("q", plan=self.plans[2], strategy=strategy, **options)
                except MidstreamError:
                    return None
            results.append(sum(table.num_rows for table in engine.push(self.rows(step)).values()))
            done.append(engine.manifest.totals.comparisons - before)
            before += done[-1]
            ended = [e for e in engine.events if isinstance(e, MigrationEnded) and e.step >= move]
            if ended and ended[-1].plan == self.plans[2] and step > move + 1:
                break
        begun = [e for e in engine.events if isinstance(e, MigrationBegun) and e.step == move]
        if not strategy:
            return Moved("", 0.0, 0.0, done[move:], results[move:])
        if not begun or not ended:
            return None
        foreseen = begun[-1].detail.get("predicted", {}).get("work", float("nan"))
        return Moved(begun[-1].strategy, foreseen, float(ended[-1].comparisons), done[move:], results[move:])


@dataclass(frozen=True)
class Moved:
    """A migration that was made: its strategy, the comparisons foreseen and real, and those and results by step."""

    strategy: str
    foreseen: float
    work: float
    done: list[int]
    results: list[int]

    def silence(self, without: Moved) -> float:
        """Return the most comparisons that results waited for: those of a step beyond a usual one, or of all of them
        while results are held back."""
        usual, found, held, behind = max(without.done), 0.0, 0.0, 0
        for done, results, those in zip(self.done, self.results, without.results, strict=False):
            behind += those - results
            held = held + usual if behind > 0 else 0.0
            found = max(found, done - usual, held)
        return found


def _tree(streams: str, rng: np.random.Generator) -> str:
    parts = list(streams)
    while len(parts) > 1:
        at = int(rng.integers(0, len(parts) - 1))
        parts[at : at + 2] = [f"({parts[at]} {parts[at + 1]})"]
    return parts[0]


@dataclass(frozen=True)
class Choice:
    """What `auto` took for a move and what was best, with the figure of each that the objective counts.

    `foreseen` has the comparisons foreseen over real of every strategy that foresees them.
    """

    taken: str
    figure: float
    best: str
    least: float
    foreseen: tuple[float, ...]

    @property
    def hits(self) -> bool:
        """Whether the strategy taken is nearly the best one."""
        return self.figure + FEW <= WITHIN * (self.least + FEW)


def choice(move: Move) -> Choice | None:
    """Make a move by every strategy; None where `auto` finds none that ends."""
    if (taken := move.run("auto")) is None or (without := move.run("")) is None:
        return None
    others = [found for name in sorted(discovered()) if (found := move.run(name)) is not None]

    def figure(one: Moved) -> float:
        return one.work if move.objective == "work" else one.silence(without)

    best = min(others, key=figure)
    foreseen = tuple((one.foreseen + FEW) / (one.work + FEW) for one in others if one.foreseen == one.foreseen)
    return Choice(taken.strategy, figure(taken), best.strategy, figure(best), foreseen)


def main(which: str, cases: int) -> list[Verdict]:
    """Run drawn moves by every strategy; print where the choice misses, and return what is required."""
    found, foreseen = list[bool](), list[float]()
    print("\n| seed | objective | taken | figure | best | figure |\n|" + 6 * "---|")
    for seed in SEEDS[which][:cases]:
        move = Move.drawn(seed)
        if (one := choice(move)) is None:
            continue
        found.append(one.hits)
        foreseen += one.foreseen
        if not one.hits:
            print(f"| {seed} | {move.objective} | {one.taken} | {one.figure:.0f} | {one.best} | {one.least:.0f} |",
                  flush=True)  # fmt: skip
    right = sum(1 / FORESEEN <= ratio <= FORESEEN for ratio in foreseen)
    what, priced = f"strategy taken within {WITHIN} of the best", f"comparisons foreseen within {FORESEEN:g} of real"
    return [
        Verdict(what, f"{sum(found)} of {len(found)}", f"at least {HITS:.0%}", sum(found) >= HITS * len(found)),
        Verdict(priced, f"{right} of {len(foreseen)}", "all", right == len(foreseen)),
    ]
