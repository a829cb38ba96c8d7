"""What a checkpoint costs: `python -m benchmarks.checkpoints [--only durable] [--rounds 4] [--quick]`.

Each comparison runs two peers of one scenario side by side, turn and turn about, and compares the medians of their
steady batches over all rounds; the answers must be equal. Ends with 1 if a limit is not kept. A quick run shows that
everything runs and agrees: small inputs, one round, no limits.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.compare import disagreements
from benchmarks.measurement import Measurement
from benchmarks.run import measure
from benchmarks.scenarios import SCENARIOS


@dataclass(frozen=True)
class Comparison:
    """A peer and the one it is held against: at most so many times its steady batches, at most so many seconds more."""

    scenario: str
    peer: str
    against: str
    times: float
    seconds: float = float("inf")


COMPARISONS = {
    "durable": Comparison("w1b", "midstream_spark", "midstream_spark_unsynced", 1.10, 0.060),
    "durable_small": Comparison("w1a", "midstream_spark", "midstream_spark_unsynced", float("inf"), 0.060),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=COMPARISONS)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="small inputs, one round, no limits")
    options = parser.parse_args(arguments)
    console, wrong = Console(highlight=False, width=140), list[str]()
    for name in options.only or COMPARISONS:
        comparison = COMPARISONS[name]
        scenario = SCENARIOS[comparison.scenario]
        scenario = scenario.quick() if options.quick else scenario
        console.rule(f"{name}: {scenario.title}")
        with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
            peers, rounds = (comparison.against, comparison.peer), 1 if options.quick else options.rounds
            measurements, failed = measure(scenario, peers, rounds, Path(folder), console)
        wrong += failed + disagreements(measurements)
        if not failed:
            ours, theirs = (_steady(measurements, peer) for peer in (comparison.peer, comparison.against))
            kept = ours <= theirs * comparison.times and ours - theirs <= comparison.seconds
            said = f"{name}: a steady batch takes {ours:.3f} s, {theirs:.3f} s without: {ours / theirs:.2f} times"
            console.print(f"{said}, {(ours - theirs) * 1000:+.0f} ms", style="bold")
            wrong += [] if kept or options.quick else [f"{name}: more than allowed"]
    for line in wrong:
        console.print(f"WRONG  {line}", style="bold red")
    return 1 if wrong else 0


def _steady(measurements: Sequence[Measurement], peer: str) -> float:
    """The median seconds of a peer's steady batches, of all rounds."""
    return median(batch.seconds for one in measurements if one.peer == peer for batch in one.steady)


if __name__ == "__main__":
    sys.exit(main())
