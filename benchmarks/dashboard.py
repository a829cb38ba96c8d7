"""What a dashboard costs the job: step times of an embedded job with 1,000 queries, without one and with a page open.

`python -m benchmarks.dashboard`: the page asks once a second, as the script in the browser does, a server in a process
of its own (`midstream dashboard`), and one in a thread of the job's (`engine.dashboard()`). Turns are mixed, so that a
machine that grows slower or faster favours none, and begin when windows are full. At the end a Chromium opens the page,
and then each view, beside the job; it tells after how many seconds each was drawn.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import midstream as ms
from midstream.dashboard.views import views
from tests.dashboard.browser import chromium

WAYS = ("none", "process", "thread")
QUERIES, ROWS, BLOCK = 1000, 500, 12
WARM = 14
"""Steps before the first that counts: no window is longer."""


def engine_of(folder: Path, queries: int) -> ms.Engine:
    engine = ms.Engine(checkpoint=folder, durable=False)
    for stream in "AB":
        engine.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    for number in range(queries):
        engine.add_query(f"q{number}", f"SELECT A.k FROM A, B WHERE A.k = B.k WINDOW {2 + number % 10} SECONDS")
        if number % 25 == 0:
            engine.push({})
    return engine


def rows(second: int) -> pa.Table:
    draw = np.random.default_rng(second)
    times = np.sort(draw.integers(0, 1_000_000, ROWS)) + second * 1_000_000
    return pa.table({"k": draw.integers(0, 5000, ROWS), "ts": pa.array(times, pa.timestamp("us"))})


@contextmanager
def watched(engine: ms.Engine, folder: Path, way: str, view: str) -> Iterator[None]:
    """A dashboard whose page is open at a view while the block lasts."""
    if way == "none":
        yield
    elif way == "thread":
        with engine.dashboard(port=0) as dashboard, _page(dashboard.url, view):
            yield
    else:
        command = [sys.executable, "-u", "-m", "midstream", "dashboard", str(folder), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url = process.stdout.readline().split()[1]
            with _page(url, view):
                yield
            process.terminate()


@contextmanager
def _page(url: str, view: str) -> Iterator[None]:
    """What an open page asks for, once a second, with the ETags that it was given."""
    over, tags = threading.Event(), dict[str, str]()

    def ask() -> None:
        while not over.wait(1.0):
            for path in ("api/0", f"api/0/views/{view}"):
                asked = urllib.request.Request(url + path, headers={"If-None-Match": tags.get(path, "")})
                try:
                    with urllib.request.urlopen(asked, timeout=60) as answer:
                        answer.read()
                        tags[path] = answer.headers["ETag"]
                except urllib.error.HTTPError as unchanged:
                    if unchanged.code != 304:
                        raise

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


def opening(engine: ms.Engine) -> Iterator[tuple[str, float]]:
    """The page, and then each view, with the seconds until it was drawn."""
    with chromium() as browser, engine.dashboard(port=0) as dashboard:
        page = browser.new_page()
        for name in ("", *views()):
            began = time.perf_counter()
            if name:
                page.evaluate("name => { location.hash = `#/0/${name}` }", name)
            else:
                page.goto(dashboard.url)
            page.wait_for_function("name => document.body.dataset.view === (name || 'plan')", arg=name)
            yield name or "the page", time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--view", default="plan", choices=tuple(views()), help="what the open page shows")
    asked = parser.parse_args()
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    with TemporaryDirectory() as root:
        folder = Path(root) / "ckpt"
        with engine_of(folder, asked.queries) as engine:
            second = 0
            while second < WARM:
                engine.push({"A": rows(second), "B": rows(second)})
                second += 1
            for _ in range(asked.rounds):
                for way in WAYS:
                    with watched(engine, folder, way, asked.view):
                        for _ in range(BLOCK):
                            tables = {"A": rows(second), "B": rows(second)}
                            began = time.perf_counter()
                            engine.push(tables)
                            took[way].append(time.perf_counter() - began)
                            second += 1
                            time.sleep(max(0.0, 0.25 - took[way][-1]))
            drawn = list(opening(engine))
    for way in WAYS:
        middle = median(took[way])
        ratio = f", {middle / median(took['none']):.2f} times" if way != "none" else ""
        print(f"{way:8} {1000 * middle:7.1f} ms a step (median of {len(took[way])}){ratio}")
    print("drawn after " + ", ".join(f"{seconds:.2f} s ({name})" for name, seconds in drawn))


if __name__ == "__main__":
    main()
