"""What the operations of nodes cost on this machine: `python -m benchmarks.ring.calibrate`.

The same join of three streams at several rates, match rates and numbers of nodes. Of every step is counted what it did;
that a step took so long is explained by it, as `midstream calibrate` does for joins in lanes. Times are the
processor's, of each run the median step. Prints what `MEASURED` in `src/midstream/ring/lengthening.py` says.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np

from benchmarks.ring.balance import STREAMS, WINDOW, engine_for, rows
from midstream.model.counters import Counters
from midstream.optimizer.cost.calibration import TimedWork, fitted

RATES, MATCHES, NODES = (10, 25, 60), (29, 211), (1, 4, 16)
WARM, MEASURED, SECOND = WINDOW, 7, 1_000_000


def timed(rate: int, modulus: int, nodes: int) -> TimedWork:
    """What a step did, visits as probes and nodes as operators, and how long the median one took."""
    conditions = f"(A.x + B.y) % {modulus} < 1 AND (B.x + C.y) % {modulus} < 1"
    engine, random = engine_for("psp_d", nodes, conditions), np.random.default_rng(1)
    took, before = [], Counters()
    for number in range(WARM + MEASURED):
        batch = {name: rows(random, rate, number * SECOND, (number + 1) * SECOND) for name in STREAMS}
        begin = time.process_time_ns()
        engine.push(batch)
        took.append(time.process_time_ns() - begin)
        if number == WARM - 1:
            before = engine.manifest.totals
    after = engine.manifest.totals
    pairs, visits = ((one / MEASURED) for one in (after.comparisons - before.comparisons, after.hops - before.hops))
    inserts = float(rate * len(STREAMS))
    return TimedWork(median(took[WARM:]), pairs, inserts=inserts, probes=visits, operator_steps=nodes, steps=1)


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    timings = []
    for rate in RATES:
        for modulus in MATCHES:
            for nodes in NODES:
                timings.append(timed(rate, modulus, nodes))
                taken = timings[-1].nanoseconds / 1e6
                print(f"{rate:4} rows, 1 in {modulus:3} matches, {nodes:2} nodes: {taken:8.2f} ms", flush=True)
    units = fitted(timings)
    # The cost model has a result wait for (M - 1) (N - 1) / 2 hops.
    hop = units.operator_step * 2 / (len(STREAMS) - 1)
    costs = {"join": units.comparison, "insert": units.insert, "send": units.probe, "hop": hop}
    print(f"MEASURED = RingCosts({', '.join(f'{name}={one / 1e9:.2g}' for name, one in costs.items())})")


if __name__ == "__main__":
    main()
