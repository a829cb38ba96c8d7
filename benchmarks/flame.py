"""Flame graphs of what an embedded engine does: `python -m benchmarks.flame`, by py-spy, as SVG.

Each workload runs in a process of its own that py-spy looks into so many times a second. Wide is what takes long; the
callers stand above what they call.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.small_steps import Kind

OUT = Path("build") / "flame"
RATE = 400
"""Looks a second."""

WORKLOADS: Mapping[str, Kind] = {
    "small_push": Kind(30),
    "twenty_joins": Kind(1, streams=21),
    "large_push": Kind(10_000, window=4),
}
"""Pushes of 30 rows into a join of three streams, of one row into one of 21, and of 10,000 rows."""


def run(name: str, seconds: float) -> int:
    """Push until the time is over, once the windows are full; how many pushes."""
    kind = WORKLOADS[name]
    engine, pushes, done = kind.engine(), kind.pushes(), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or done < kind.window:
        engine.push(next(pushes))
        done += 1
    engine.close()
    return done


def drawn(name: str, seconds: float, out: Path) -> Path:
    """Draw the flame graph of a workload."""
    path = out / f"flame_{name}.svg"
    spy = Path(sysconfig.get_path("scripts")) / "py-spy"
    looks = [str(spy), "record", "--format", "flamegraph", "--rate", str(RATE), "--output", str(path)]
    program = [sys.executable, "-m", "benchmarks.flame", "--run", name, "--seconds", str(seconds)]
    subprocess.run([*looks, "--", *program], check=True, stdout=subprocess.DEVNULL)
    return path


def main() -> None:
    """Draw the flame graphs of all workloads, or run one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each workload runs")
    parser.add_argument("--run", choices=WORKLOADS, help="run this workload and draw nothing")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder of the pictures")
    given = parser.parse_args()
    if given.run:
        print(f"{given.run}: {run(given.run, given.seconds)} pushes")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for name in WORKLOADS:
        print(drawn(name, given.seconds, given.out))


if __name__ == "__main__":
    main()
