"""Run one peer on one scenario in this process: `python -m benchmarks.peers PEER SCENARIO SOURCE WORK OUTPUT`."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from benchmarks.peers import PEERS, Task, peer
from benchmarks.scenarios import SCENARIOS


def main() -> None:
    """Measure and write the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("source", type=Path, help="folder of the input")
    parser.add_argument("work", type=Path, help="folder for checkpoints and results")
    parser.add_argument("output", type=Path, help="file for the measurement")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--batches", type=int, help="only the first batches of the scenario")
    options = parser.parse_args()
    scenario = SCENARIOS[options.scenario]
    scenario = scenario.quick() if options.quick else scenario
    task = Task(replace(scenario, batches=options.batches or scenario.batches), options.source, options.work)
    measurement = peer(options.peer)(task)
    options.output.write_text(json.dumps(measurement.to_json()))


if __name__ == "__main__":
    main()
