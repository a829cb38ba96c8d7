"""What many lanes and many queries cost: `python -m benchmarks.many_lanes`.

Three things are measured, each as processor time on one core, which no other load on the machine changes much: pushes
into an embedded engine of one thread, by lanes; pushes by queries that wait for streams which bring nothing; and what
the driver of a job does for each step beside its tasks, where every lane is one of its own: it plans the step, pickles
the plan for the tasks, reads what they report, concludes the step, publishes the manifest and sweeps. Beside the last
stand the bytes of the manifest's file and of the reports.
"""

from __future__ import annotations

import argparse
import gc
import json
import pickle
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from benchmarks.small_steps import Kind
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.writer import Writer
from midstream.model.counters import Counters
from midstream.model.ids import LaneId, OperatorId
from midstream.model.manifest import LaneState, Manifest
from midstream.pipeline.commits import STEPS_BETWEEN_TIDYINGS
from midstream.pipeline.lane_task import stripped
from midstream.runtime.lane_key import is_single
from midstream.runtime.watermark import Seen
from midstream.step.conclude import conclude
from midstream.step.lane_report import Reported, decode_lanes, encode_lanes
from midstream.step.plan_step import plan_step
from midstream.storage.files import FileStore
from midstream.storage.sweep import Sweeper
from midstream.storage.write_back import WriteBackStore
from midstream.units.lane_step import LaneOutput
from midstream.units.program import compile_program

LANES, QUERIES = (1, 2, 16, 64, 256, 1_000), (1, 100, 1_000)
DRIVEN = (10, 100, 1_000, 10_000)
"""The lanes whose driver is simulated; a job can have 4,096."""

TASKS = 16
"""Of a simulated step; each writes and reports its share of the lanes."""

MOST_BY_LANES, MOST_BY_QUERY = 2.0, 10.0
"""What is required: 256 lanes take at most so many times what 2 do; a further query so many microseconds."""

MOST_BY_DRIVER, MOST_OF_ROOT = 150.0, 150_000
"""Of a step that brings rows to all of 1,000 lanes."""


@dataclass(frozen=True)
class Driven:
    """What the driver does for a step: milliseconds, and the bytes of the manifest's file and of what tasks report."""

    took: float
    bytes: float
    reported: float


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
    times, sizes, reported = list[float](), list[int](), list[int]()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        writer, store = Writer.take(ManifestLog(f"{folder}/manifests")), FileStore(f"{folder}/store")
        held = dict(manifest.lane_states)
        manifest, sweeper = writer.begin(manifest), Sweeper(store.storage)
        for step in range(steps):
            busy = {(step * touched + n) % lanes for n in range(touched)}
            reports = [json.dumps(one).encode() for one in _reports(held, busy, step, uses, store)]
            gc.freeze()  # What tasks hold is no garbage of the driver.
            begun = time.process_time()
            plan = plan_step(manifest, ())
            pickle.dumps(stripped(plan))
            outputs = {k: v for report in reports for k, v in decode_lanes(json.loads(report), store).items()}
            manifest, _ = conclude(manifest, plan, outputs, {name: Seen() for name in manifest.streams})
            writer.commit(manifest)
            if step % STEPS_BETWEEN_TIDYINGS == 0:
                sweeper.sweep(writer.manifests.kept())
            times.append(time.process_time() - begun)
            newest = max(Path(f"{folder}/manifests").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            sizes.append(newest.stat().st_size)
            reported.append(sum(map(len, reports)))
    return Driven(1e3 * fmean(times[1:]), fmean(sizes[1:]), fmean(reported[1:]))


Uses = dict[str, tuple[OperatorId, ...]]


def _widened(manifest: Manifest, lanes: int) -> tuple[Manifest, Uses]:
    """The manifest with the state of its one lane in each of so many, and what counts in a lane."""
    ((lane, state),) = [(k, v) for k, v in manifest.lane_states.items() if not is_single(k.group)][:1]
    units = compile_program(manifest, lane.group, {}).units
    uses = {unit.name: unit.requirements(unit.box(unit.plan)).counted for unit in units}
    states = {LaneId(lane.group, number): _moved(state, f"0-lane{number}") for number in range(lanes)}
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


def _reports(
    held: dict[LaneId, LaneState], busy: set[int], step: int, uses: Uses, store: FileStore
) -> Iterator[Reported]:
    """What the tasks of a step report of their lanes, once they have written the parts of these."""
    files, lanes = WriteBackStore(store), list(held)
    for task in range(TASKS):
        own = {lane: _output(lane, held[lane], step, uses, busy) for lane in lanes[task::TASKS]}
        states = {lane: output.state for lane, output in own.items()}
        states = files.in_parts(states, f"{step:08d}-p{task}.lanes-00000000", lambda group: len(lanes))
        held.update(states)
        yield encode_lanes({lane: replace(output, state=states[lane]) for lane, output in own.items()})


def _output(lane: LaneId, state: LaneState, step: int, uses: Uses, busy: set[int]) -> LaneOutput:
    if lane.number not in busy:
        return LaneOutput(state, {}, {}, uses)
    counted = {id: Counters(1, 1, 1, 1, 1) for id in next(iter(uses.values()))}
    return LaneOutput(_moved(state, f"{step:08d}-{lane}"), {}, counted, uses)


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
                f"{one.bytes / 1e3:,.1f} kB; all {every.took:.1f} ms, {every.bytes / 1e3:,.1f} kB, "
                f"and {every.reported / 1e3:,.1f} kB of reports",
                flush=True,
            )
            if wide == 1_000:
                _verdict("milliseconds of the driver where all of 1,000 lanes have rows", every.took, MOST_BY_DRIVER)
                _verdict("bytes of its manifest", every.bytes, MOST_OF_ROOT)


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
    by_driver((1, 256) if quick else DRIVEN, (1, 20) if quick else QUERIES, steps)


if __name__ == "__main__":
    main()
