"""The example of alerts at several horizons, with its second terminal: what it prints can be typed, and is answered."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from midstream.checkpoint.manifest_log import ManifestLog
from tests.forked import run
from tests.spark.forked_drivers import ForkedDrivers

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "horizons.py"
MINUTES = 600
"""More than the test waits for: it interrupts the example when it has seen enough."""

pytestmark = pytest.mark.timeout(600)


def command_line(shown: str, name: str) -> list[str]:
    """What the example says to type after `midstream`."""
    line = next(line for line in shown.splitlines() if re.match(rf"\s+midstream add \S+ {name} ", line))
    program, *arguments = shlex.split(line)
    assert program == "midstream"
    return [*arguments, "--wait", "240", "--json"]


def replayed(log: Path) -> int:
    """How many minutes the example says it has replayed."""
    return max([0, *(int(found) for found in re.findall(r"minute +(\d+):", log.read_text()))])


def oracle(folder: Path, celsius: object, minutes: int, last: int, since: int = 0, first: int = 0) -> Counter[Any]:
    """Every pair of readings since a time, the later of which is in one of the files `first` to `last`."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        readings = [
            f"""SELECT *, epoch_us(ts) AS us, parse_filename(filename)[8:11]::INT AS file
                FROM read_parquet('{folder}/{stream}/*.parquet', filename = true)"""
            for stream in ("temperature", "humidity")
        ]
        found = connection.execute(
            f"""SELECT T.room, T.celsius, H.percent, T.us, H.us, greatest(T.us, H.us)
                FROM ({readings[0]}) T JOIN ({readings[1]}) H ON T.room = H.room
                WHERE T.celsius > {celsius} AND abs(T.us - H.us) <= {minutes * 60_000_000}
                  AND least(T.us, H.us) >= {since} AND greatest(T.file, H.file) BETWEEN {first} AND {last}"""
        )
        return Counter(found.fetchall())


def answers(folder: Path) -> Counter[Any]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        files = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = false)"
        columns = "room, celsius, percent, epoch_us(measured), epoch_us(damp), epoch_us(moment)"
        return Counter(connection.execute(f"SELECT {columns} FROM {files}").fetchall())


def test_a_newcomer_adds_queries_from_a_second_terminal_and_sees_them_answered(
    tmp_path: Path, drivers: ForkedDrivers
) -> None:
    folder = tmp_path / "horizons"
    first = drivers.start(str(EXAMPLE), "--folder", folder, "--minutes", str(MINUTES), "--pace", "0.3")
    try:
        while "midstream status" not in first.out.read_text():
            assert first.poll() is None, first.errors.read_text()
            time.sleep(0.05)
        events = {}
        for name in ("hot_and_dry", "warm"):
            second = run("midstream", *command_line(first.out.read_text(), name))
            assert second.returncode == 0, second.stderr
            events[name] = json.loads(second.stdout)["event"]
        while replayed(first.out) < events["warm"]["step"] + 10:
            assert first.poll() is None, first.errors.read_text()
            time.sleep(0.1)
        first.send_signal(signal.SIGINT)
        first.wait()
    finally:
        first.kill()
        ended = drivers.end(first)
    assert ended.returncode == 0, ended.stderr
    told = ended.stdout
    module = runpy.run_path(str(EXAMPLE))
    asked = {
        "within_1_minute": (24, 1), "within_5_minutes": (26, 5), "within_15_minutes": (28, 15),
        "within_1_hour": (30, 60), "hot_and_dry": ("30 AND H.percent < 50", 30), "warm": (26, 30),
    }  # fmt: skip
    assert {**module["HORIZONS"], **module["NEWCOMERS"]} == {
        name: module["ALERT"].format(celsius=celsius, minutes=minutes) for name, (celsius, minutes) in asked.items()
    }
    last = ManifestLog(folder / "checkpoint" / "manifests").latest()
    assert last is not None
    for name in module["HORIZONS"]:
        assert answers(folder / "alerts" / name) == oracle(folder, *asked[name], last.step) != Counter()
    assert events["hot_and_dry"]["sees"] == "all"
    assert isinstance(events["warm"]["sees"], int) and events["warm"]["exact_from"] > events["warm"]["sees"]
    for name, event in events.items():
        assert 0 < event["step"] < last.step < MINUTES
        since = event["sees"] if isinstance(event["sees"], int) else 0
        expected = oracle(folder, *asked[name], last.step, since, event["step"])
        assert answers(folder / "checkpoint" / "results" / name) == expected != Counter()
        assert f"step {event['step']:4}: {name} was added" in told
