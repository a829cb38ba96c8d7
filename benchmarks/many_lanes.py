"""What many lanes and many queries cost: `python -m benchmarks.many_lanes`.

Three things are measured, each as processor time on one core, which no other load on the machine changes much: pushes
into an embedded engine of one thread, by lanes; pushes by queries that wait for streams which bring nothing; and what
the driver of a job does for each step beside its tasks, where every lane is one of its own: it plans the step,
concludes it and publishes the manifest. Beside the last stand the bytes of the manifest's file.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from benchmarks.small_steps import Kind
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.writer import Writer
from midstream.model.counters import Counters
from midstream.model.ids import LaneId, OperatorId
from midstream.model.manifest import LaneState, Manifest
from midstream.runtime.lane_key import is_single
from midstream.runtime.watermark import Seen
from midstream.step.conclude import conclude
from midstream.step.lane_step import LaneOutput
from midstream.step.plan_step import plan_step
from midstream.step.program import compile_program

LANES, QUERIES = (1, 2, 16, 64, 256, 1_000), (1, 100, 1_000)

MOST_BY_LANES, MOST_BY_QUERY = 2.0, 10.0
"""What is required: 256 lanes take at most so many times what 2 do; a further query so many microseconds."""


@dataclass(frozen=True)
class Driven:
    """What the driver does for a step: milliseconds, and the bytes of the manifest's file."""

    took: float
    bytes: float


def pushed(kind: Kind, filling: int, pushes: int) -> float:
    """The milliseconds of a push once windows are full, in one thread."""
    engine, tables, times = kind.engine(threads=1), kind.pushes(), list[float]()
    for _ in range(filling + pushes):
        given = next(tables)
        begun = time.process_time()
        engine.push(given)
        times.append(time.process_time() - begun)
    engine.close()
    return 1e3 * median(times[filling:])


def driven(lanes: int, queries: int, touched: int, steps: int) -> Driven:
    """What a job's driver does where a step brings rows to some of its lanes."""
    engine = Kind(30, window=4, queries=queries).engine(threads=1)
    for tables, _ in zip(Kind(30, window=4).pushes(), range(6), strict=False):
        engine.push(tables)
    engine.close()
    manifest, uses = _widened(engine.manifest, lanes)
    times, sizes = list[float](), list[int]()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        writer = Writer.take(ManifestLog(folder))
        manifest = writer.begin(manifest)
        for step in range(steps):
            busy = {(step * touched + n) % lanes for n in range(touched)}
            begun = time.process_time()
            plan = plan_step(manifest, ())
            outputs = {lane: _output(lane, state, lane.number in busy, step, uses)
                       for lane, state in manifest.lane_states.items()}  # fmt: skip
            manifest, _ = conclude(manifest, plan, outputs, {name: Seen() for name in manifest.streams})
            writer.commit(manifest)
            times.append(time.process_time() - begun)
            sizes.append(max(Path(folder).glob("*.json"), key=lambda path: path.stat().st_mtime_ns).stat().st_size)
    return Driven(1e3 * fmean(times), fmean(sizes))


Uses = dict[str, tuple[OperatorId, ...]]


def _widened(manifest: Manifest, lanes: int) -> tuple[Manifest, Uses]:
    """The manifest with the state of its one lane in each of so many, and what counts in a lane."""
    ((lane, state),) = [(k, v) for k, v in manifest.lane_states.items() if not is_single(k.group)][:1]
    units = compile_program(manifest, lane.group, {}).units
    uses = {unit.name: unit.requirements(unit.box(unit.plan)).counted for unit in units}
    states = {LaneId(lane.group, number): _moved(state, f"lane{number}") for number in range(lanes)}
    return replace(manifest, job="benchmark", lanes=lanes, lane_states=states), uses


def _moved(state: LaneState, name: str) -> LaneState:
    """The state with its last chunks anew."""
    return LaneState(
        {
            id: replace(listing, chunks=(*listing.chunks[:-1], replace(listing.chunks[-1], name=f"{name}-{id}")))
            if listing.chunks
            else listing
            for id, listing in state.states.items()
        },
        state.boxes,
    )


def _output(lane: LaneId, state: LaneState, busy: bool, step: int, uses: Uses) -> LaneOutput:
    if not busy:
        return LaneOutput(state, {}, {}, uses)
    counted = {id: Counters(1, 1, 1, 1, 1) for id in next(iter(uses.values()))}
    return LaneOutput(_moved(state, f"{lane}/{step:08d}"), {}, counted, uses)


def by_lanes(lanes: Sequence[int], filling: int, pushes: int) -> None:
    """Pushes of 20,000 and of 30 rows."""
    for rows, window in ((20_000, 4), (30, 20)):
        kinds = {count: Kind(rows, window=window, lanes=count, keys=max(rows, 1_000)) for count in lanes}
        found = {count: pushed(kind, filling, pushes) for count, kind in kinds.items()}
        for count, took in found.items():
            print(f"{rows:,} rows, {count:,} lanes: {took:.1f} ms, {took / found[2]:.2f} of 2 lanes", flush=True)
        if rows == 20_000:
            _verdict("256 lanes by 2", found[256] / found[2], MOST_BY_LANES)


def by_queries(queries: Sequence[int], filling: int, pushes: int) -> None:
    """Pushes of 30 rows that all queries but one do not want."""
    found = {count: pushed(Kind(30, window=20, queries=count), filling, pushes) for count in queries}
    for count, took in found.items():
        print(f"{count:,} queries, one of which gets rows: {took:.2f} ms", flush=True)
    further = 1e3 * (found[queries[-1]] - found[queries[0]]) / (queries[-1] - queries[0])
    _verdict("a further query, microseconds", further, MOST_BY_QUERY)


def by_driver(lanes: Sequence[int], queries: Sequence[int], steps: int) -> None:
    """The driver's own work, where one lane gets rows and where all do."""
    for count in queries:
        for wide in lanes:
            one, every = driven(wide, count, 1, steps), driven(wide, count, wide, steps)
            print(
                f"driver, {wide:,} lanes, {count:,} queries: one lane with rows {one.took:.1f} ms, "
                f"{one.bytes / 1e3:,.1f} kB; all {every.took:.1f} ms, {every.bytes / 1e3:,.1f} kB",
                flush=True,
            )


def _verdict(what: str, found: float, most: float) -> None:
    print(f"{'PASS' if found <= most else 'FAIL'} {what}: {found:.2f}, required at most {most:g}", flush=True)


def main() -> None:
    """Print what is measured, and whether it is what is required."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="show that it runs; its times mean nothing")
    quick = parser.parse_args().quick
    filling, pushes, steps = (2, 2, 4) if quick else (10, 14, 32)
    by_lanes((2, 256) if quick else LANES, filling, pushes)
    by_queries((1, 20) if quick else QUERIES, filling, pushes)
    by_driver((1, 256) if quick else (1, 16, 64, 256, 1_000), (1, 20) if quick else QUERIES, steps)


if __name__ == "__main__":
    main()
