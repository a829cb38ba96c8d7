"""How long output pauses where a node joins a running ring: `python -m benchmarks.ring.relocation`.

Steady streams, embedded. A gap is the time from one step's output to the next one's. A round has a run in which nothing
is done, one in which a node joins passively and one in which it joins aggressively, in turn; the longest gap of each is
taken from the step of the change on, over more than a window. Prints the median over rounds for each, and against the
run without it; then the gap of the very step that has the change. With `--cpu` the time is that of the process, which
other processes on the machine do not lengthen.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import midstream as ms
from benchmarks.ring.balance import CONDITIONS, SECOND, STREAMS, WINDOW, engine_for, rows

Clock = Callable[[], float]

WAYS = ("none", "passive", "aggressive")


def gaps(
    scheme: str, nodes: int, way: str, rate: float, step: float, conditions: str, seed: int, now: Clock
) -> list[float]:
    """Seconds between outputs, from the step at which a node joins on."""
    engine, random, found = engine_for(scheme, nodes, conditions), np.random.default_rng(seed), list[float]()
    change, steps = int(1.25 * WINDOW / step), int(2.5 * WINDOW / step)
    gc.collect()
    for number in range(steps):
        begin, end = int(number * step * SECOND), int((number + 1) * step * SECOND)
        arrived = {name: rows(random, int(rate * step), begin, end) for name in STREAMS}
        started = now()
        if number == change and way != "none":
            engine.spread("q", scheme, nodes + 1, relocation=way)
        engine.push(arrived)
        found.append(now() - started)
    checked(engine, nodes + (way != "none"))
    return found[change:]


def checked(engine: ms.Engine, nodes: int) -> None:
    """Fail unless the query has so many nodes, each with rows."""
    spread = engine.manifest.queries["q"].nodes
    assert spread is not None
    assert spread.reach == nodes
    assert all(node.rows for node in spread.work)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--schemes", default="psp,psp_i,psp_d")
    asked.add_argument("--nodes", type=int, default=4, help="before one joins")
    asked.add_argument("--conditions", default="two keys", choices=CONDITIONS)
    asked.add_argument("--rate", type=float, default=1_000)
    asked.add_argument("--step", type=float, default=1.0)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--cpu", action="store_true")
    said = asked.parse_args()
    now = time.process_time if said.cpu else time.perf_counter
    for scheme in said.schemes.split(","):
        longest: dict[str, list[float]] = {way: [] for way in WAYS}
        first: dict[str, list[float]] = {way: [] for way in WAYS}
        for seed in range(said.rounds):
            for way in WAYS:
                found = gaps(scheme, said.nodes, way, said.rate, said.step, CONDITIONS[said.conditions], seed, now)
                longest[way].append(max(found))
                first[way].append(found[0])
        plain = median(longest["none"])
        for way in WAYS:
            gap, own = median(longest[way]), median(first[way])
            print(
                f"{scheme:6} {way:10} longest gap {gap:.3f} s, {gap / plain:.2f} times; of that step {own:.3f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
