"""How long output pauses where a node joins a running ring: `python -m benchmarks.ring.relocation`.

Steady streams, embedded. A gap is the time from one output to the next, from the step at which a node joins
on and over more than a window. A round has a run in which none joins, one in which a node joins passively and one in
which it joins aggressively, step by step in turn on the same rows, so that whatever else the machine does lengthens all
three; each step begins with Python's garbage collected, which would else fall to one of them.

A step's gap is the median over rounds, and the longest is that of the steps': what a change costs, it costs in the same
step of every round, and what comes in one round alone is the machine's. Prints it in seconds and against that of the
run in which none joins; then the longest gap of a round as it is, the median over rounds of how many times that of the
same round's plain run it is; and the gap of the very step that has the change. With `--cpu` the time is that of the
process, which others on the machine do not lengthen.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

import midstream as ms
from benchmarks.ring.balance import CONDITIONS, SECOND, STREAMS, WINDOW, engine_for, rows
from benchmarks.ring.record import Pause

Clock = Callable[[], float]

PLAIN, CHANGES = "none", ("passive", "aggressive")
WAYS = (PLAIN, *CHANGES)

SCHEMES = ("psp", "psp_i", "psp_d")

NODES, RATE, STEP, ROUNDS = 4, 1_000.0, 1.0, 9
"""Nodes before one joins, rows a second of a stream, seconds of a step, and rounds."""


def gaps(
    scheme: str, nodes: int, rate: float, step: float, conditions: str, seed: int, now: Clock
) -> dict[str, list[float]]:
    """Seconds between outputs by each way, from the step at which a node joins on."""
    engines = {way: engine_for(scheme, nodes, conditions) for way in WAYS}
    random, found = np.random.default_rng(seed), {way: list[float]() for way in WAYS}
    change, steps = int(1.25 * WINDOW / step), int(2.5 * WINDOW / step)
    for number in range(steps):
        begin, end = int(number * step * SECOND), int((number + 1) * step * SECOND)
        arrived = {name: rows(random, int(rate * step), begin, end) for name in STREAMS}
        first = (number + seed) % len(WAYS)
        for way in (*WAYS[first:], *WAYS[:first]):
            gc.collect()
            started = now()
            if number == change and way != PLAIN:
                engines[way].spread("q", scheme, nodes + 1, relocation=way)
            engines[way].push(arrived)
            found[way].append(now() - started)
    for way, engine in engines.items():
        checked(engine, nodes + (way != PLAIN))
    return {way: every[change:] for way, every in found.items()}


def checked(engine: ms.Engine, nodes: int) -> None:
    """Fail unless the query has so many nodes, each with rows."""
    spread = engine.manifest.queries["q"].nodes
    assert spread is not None
    assert spread.reach == nodes
    assert all(node.rows for node in spread.work)


def pauses(
    rounds: int,
    schemes: tuple[str, ...] = SCHEMES,
    nodes: int = NODES,
    rate: float = RATE,
    step: float = STEP,
    conditions: str = "two keys",
    now: Clock = time.process_time,
) -> Iterator[Pause]:
    """The longest gap of each scheme by each way."""
    for scheme in schemes:
        every = [gaps(scheme, nodes, rate, step, CONDITIONS[conditions], seed, now) for seed in range(rounds)]
        typical = {way: [median(gap) for gap in zip(*(found[way] for found in every), strict=True)] for way in WAYS}
        for way in WAYS:
            longest = max(typical[way])
            each = median(max(found[way]) / max(found[PLAIN]) for found in every)
            yield Pause(scheme, way, longest, longest / max(typical[PLAIN]), each, typical[way][0])


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--schemes", default=",".join(SCHEMES))
    asked.add_argument("--nodes", type=int, default=NODES, help="before one joins")
    asked.add_argument("--conditions", default="two keys", choices=CONDITIONS)
    asked.add_argument("--rate", type=float, default=RATE)
    asked.add_argument("--step", type=float, default=STEP)
    asked.add_argument("--rounds", type=int, default=ROUNDS)
    asked.add_argument("--cpu", action="store_true")
    said = asked.parse_args()
    now = time.process_time if said.cpu else time.perf_counter
    for one in pauses(
        said.rounds, tuple(said.schemes.split(",")), said.nodes, said.rate, said.step, said.conditions, now
    ):
        print(
            f"{one.scheme:6} {one.way:10} longest gap {one.longest:.3f} s, {one.against:.2f} times "
            f"(by round {one.each:.2f}); of that step {one.first:.3f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
