"""Alerts at several horizons over one sensor join, and a query added from a second terminal.

Run `python examples/horizons.py`, and in a second terminal the command that it prints. Thermometers and hygrometers
report from six rooms; every alert joins the two by room, over a horizon of its own from one minute to an hour, the
longer the horizon the hotter it must have been (the example that Wang 2.1 begins with). All of them run over one
state. A minute of the sensors' time is one file of each stream, and is replayed in a second.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import midstream as ms

ROOMS = ("attic", "cellar", "greenhouse", "kitchen", "laundry", "server room")
SECOND, MINUTE = 1_000_000, 60_000_000
STREAMS = {"temperature": ("celsius", 20 * SECOND), "humidity": ("percent", 30 * SECOND)}
"""By stream: what is reported, and how often by each room."""

ALERT = """SELECT T.room, T.celsius, H.percent, T.ts AS measured, H.ts AS damp, _ts AS moment
FROM temperature T, humidity H WHERE T.room = H.room AND T.celsius > {celsius} WINDOW {minutes} MINUTES"""

HORIZONS = {
    "within_1_minute": ALERT.format(celsius=24, minutes=1),
    "within_5_minutes": ALERT.format(celsius=26, minutes=5),
    "within_15_minutes": ALERT.format(celsius=28, minutes=15),
    "within_1_hour": ALERT.format(celsius=30, minutes=60),
}

NEWCOMERS = {
    # Asks for more than `within_1_hour`, over a shorter time: every row that it wants is there.
    "hot_and_dry": ALERT.format(celsius="30 AND H.percent < 50", minutes=30),
    # What `within_5_minutes` asks for, over a longer time: older rows are gone, and it is told from when it is exact.
    "warm": ALERT.format(celsius=26, minutes=30),
}


def write_sensors(folder: Path, minutes: int) -> None:
    """A file a minute for each stream, the same every time; Spark takes them in order of their dates."""
    random = np.random.default_rng(2013)
    for stream, (value, every) in STREAMS.items():
        (folder / stream).mkdir(parents=True)
        for minute in range(minutes):
            times = np.repeat(np.arange(minute * MINUTE, (minute + 1) * MINUTE, every), len(ROOMS))
            rooms = np.tile(np.arange(len(ROOMS)), MINUTE // every)
            times += random.integers(0, every // 2, len(times))
            wave = np.sin(2 * math.pi * times / (40 * MINUTE) + rooms)
            level = 25 + 4 * wave if value == "celsius" else 60 - 15 * wave
            columns = {
                "room": [ROOMS[room] for room in rooms],
                value: np.round(level + random.normal(0, 1.5, len(times)), 1),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
            }
            file = folder / stream / f"minute-{minute:04}.parquet"
            parquet.write_table(pa.table(columns).sort_by("ts"), file)
            os.utime(file, (1_400_000_000 + minute, 1_400_000_000 + minute))


def job_over(session: Any, folder: Path) -> ms.Job:
    """The job of all horizons, not started yet."""
    job = ms.Job(session, checkpoint=folder / "checkpoint", lanes=2)
    for stream, (value, _) in STREAMS.items():
        reader = session.readStream.schema(f"room STRING, {value} DOUBLE, ts TIMESTAMP")
        job.stream(stream, reader.option("maxFilesPerTrigger", 1).parquet(str(folder / stream)), timestamp="ts")
    for name, sql in HORIZONS.items():
        job.query(name, sql, sink=ms.sinks.files(folder / "alerts" / name))
    return job


def invite(folder: Path) -> None:
    """Say what to type in a second terminal, and where its answers will be."""
    print("\nAdd a query from a second terminal, in this folder:\n")
    for name, sql in NEWCOMERS.items():
        print(f'  midstream add {folder / "checkpoint"} {name} "{" ".join(sql.split())}" --wait 60\n')
    print(f"Its answers appear in {folder / 'checkpoint' / 'results'}/<name>, a folder a step. See also:\n")
    print(f"  midstream status {folder / 'checkpoint'}\n", flush=True)


def welcome(event: Any) -> str:
    """What the job says of a query that came in mid-run."""
    words = {"all": "every row it wants is there", "new": "it sees the rows that come from now on"}
    sees = words[event.sees] if event.sees in words else f"it sees the rows since {clock(event.sees)}"
    exact = "" if event.exact_from is None else f"; exact from {clock(event.exact_from)} on"
    return f"step {event.step:4}: {event.query} was added: {sees}{exact}"


def clock(moment: int) -> str:
    """A moment of the sensors' time."""
    return f"{moment // (60 * MINUTE):02}:{moment // MINUTE % 60:02}:{moment // SECOND % 60:02}"


def watch(run: Any, minutes: int) -> None:
    """Tell what happens until the last minute has been replayed."""
    told, done, alerts = 0, 0, dict[str, int]()
    while done < minutes and not run.await_termination(0.2):
        events = run.events
        for event in events[told:]:
            if event.kind == "query_added" and event.query not in HORIZONS:
                print(welcome(event), flush=True)
            if event.kind == "step_done" and sum(event.rows_in.values()):
                done += 1
                for name, rows in event.rows_out.items():
                    alerts[name] = alerts.get(name, 0) + rows
                if done % 10 == 0:
                    sums = ", ".join(f"{name} {rows:,}" for name, rows in alerts.items())
                    print(f"minute {done:4}: {event.state_rows:,} rows of state; alerts so far: {sums}", flush=True)
        told = len(events)


def main() -> int:
    """Replay the sensors until their files are used up, or until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/horizons"), help="made anew; default: %(default)s")
    parser.add_argument("--minutes", type=int, default=240, help="how much is replayed; default: %(default)s")
    parser.add_argument("--pace", type=float, default=1.0, help="seconds that a minute takes; default: %(default)s")
    options = parser.parse_args()
    from midstream.spark.session import local_session

    shutil.rmtree(options.folder, ignore_errors=True)
    write_sensors(options.folder, options.minutes)
    session = local_session("horizons")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark has taken it for itself.
    pace = f"{round(1000 * options.pace)} milliseconds"
    run = job_over(session, options.folder).start(trigger={"processingTime": pace})
    try:
        while run.status()["step"] < 0:
            run.await_termination(0.2)
        invite(options.folder)
        watch(run, options.minutes)
    except KeyboardInterrupt:
        print("stopped")
    finally:
        run.stop()
        session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
