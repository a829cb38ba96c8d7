"""The pictures of the dashboard page, made from jobs that run: `python -m docs.screenshots`."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from playwright.sync_api import Browser

from midstream.demo.flights import read_streams
from midstream.demo.live import live_engine, steps
from midstream.demo.play import QUERY
from midstream.embedded import Engine
from tests.dashboard.browser import chromium
from tests.dashboard.jobs import played

DOCS = Path(__file__).resolve().parent


def taken(browser: Browser, engine: Engine, file: str, see: str, address: str = "#/0/plan", **options: object) -> None:
    """A picture of what the page shows of an engine, once something is to be seen on it."""
    with engine.dashboard(port=0, control=True) as dashboard:
        page = browser.new_page(viewport={"width": 1240, "height": 800}, **options)  # type: ignore[arg-type]
        page.goto(dashboard.url)
        page.locator("main > *").first.wait_for()
        page.evaluate("address => { location.hash = address || location.hash }", address)
        if address.endswith("/trial"):
            page.get_by_role("button", name="Show the plan it would get").click()
        page.locator(see).first.wait_for()
        page.wait_for_timeout(1500)
        page.screenshot(path=DOCS / file, full_page=True)
        page.close()


def unclean_engine(checkpoint: Path) -> Engine:
    """A job some of whose rows came too late, or could not be read."""
    engine = Engine(checkpoint=checkpoint)
    for name in ("orders", "payments"):
        engine.create_stream(name, "id BIGINT, amount DOUBLE, ts TIMESTAMP", timestamp="ts", lateness="10 seconds")
    engine.add_query("paid", "SELECT * FROM orders o, payments p WHERE o.id = p.id WINDOW 1 MINUTE")
    start = datetime(2026, 11, 1, 12)
    for step in range(24):
        late, wrong = step in (7, 15, 16), step in (4, 9, 20)
        seconds = [step * 20 - (90 + step if late and at == 2 else at) for at in range(4)]
        times = [start + timedelta(seconds=second) for second in seconds]
        ids = [str(step * 4 + at) for at in range(4)]
        amounts = ["12.5", "80", "n/a" if wrong else "7.25", "19.99"]
        engine.push({"orders": [dict(id=i, amount=a, ts=t) for i, a, t in zip(ids, amounts, times, strict=True)]})
        engine.push({"payments": [dict(id=i, amount="7.25", ts=t) for i, t in zip(ids, times, strict=True)]})
    return engine


def shared_engine(checkpoint: Path) -> Engine:
    """Queries that share a chain, over keys that are not alike, and one that is spread over nodes."""
    engine = Engine(checkpoint=checkpoint, lanes=6, sharing="mem_opt")
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, v DOUBLE, ts TIMESTAMP", timestamp="ts")
    joined = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k"
    filters = {2: "", 5: " AND A.v > 0.5", 6: "", 9: " AND A.v > 0.9 AND B.v < 0.3", 14: " AND A.v > 0.9 AND B.v < 0.3"}
    for seconds, filtered in filters.items():
        engine.add_query(f"last {seconds} s", f"{joined}{filtered} WINDOW {seconds} SECONDS")
    engine.add_query("spread", f"{joined} AND A.v + 0.1 > B.v WINDOW 3 SECONDS", spread="psp_d", nodes=5)
    for second in range(16):
        draw = np.random.default_rng(second)
        engine.push({name: _skewed(draw, second) for name in "ABC"})
    return engine


def _skewed(draw: np.random.Generator, second: int, rows: int = 40) -> pa.Table:
    times = np.sort(draw.integers(0, 10**6, rows)) + second * 10**6
    keys, values = draw.zipf(1.4, rows) % 50, draw.random(rows)
    return pa.table({"k": keys, "v": values, "ts": pa.array(times, pa.timestamp("us"))})


def main() -> None:
    """Make all of them again."""
    with chromium() as browser, TemporaryDirectory() as folder:
        streams = read_streams()
        with live_engine(streams, Path(folder) / "flights") as engine:
            for tables in islice(steps(streams), 20):
                engine.push(tables)
            taken(browser, engine, "dashboard_proposal.png", "#approve-proposal")
            taken(browser, engine, "dashboard_overview.png", "#life", "#/0/overview")
            taken(browser, engine, "dashboard_trial.png", ".tried .plan-graph", "#/0/trial", color_scheme="dark")
        with live_engine(streams, Path(folder) / "charted") as engine:
            engine.optimize(QUERY, mode="ask", review="1 day", horizon="90 days", policy="lambda_chart")
            for tables in islice(steps(streams), 24):
                engine.push(tables)
            taken(browser, engine, "dashboard_decisions.png", "#review", "#/0/decisions")
            for tables in islice(steps(streams), 40):
                engine.push(tables)
            taken(browser, engine, "dashboard_steps.png", ".step-bar:nth-child(40)", "#/0/steps")
        with unclean_engine(Path(folder) / "unclean") as engine:
            taken(browser, engine, "dashboard_rows.png", "table:nth-of-type(1)", "#/0/rows")
        with shared_engine(Path(folder) / "shared") as engine:
            taken(browser, engine, "dashboard_sharing.png", ".chain", "#/0/sharing")
            taken(browser, engine, "dashboard_lanes.png", ".ring", "#/0/lanes", color_scheme="dark")
        job = played(Path(folder) / "ckpt", lanes=2)
        job.push(24)
        job.engine.migrate("q", "((A B) (C D))", strategy="parallel_track")
        job.push(9)
        with job.engine as engine:
            taken(browser, engine, "dashboard_migration.png", ".migration", color_scheme="dark")


if __name__ == "__main__":
    main()
