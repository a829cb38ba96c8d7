"""The dashboard of a live embedded job in a real Chromium."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect

import midstream as ms
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from tests.dashboard.browser import HOSTILE, TOKEN, opened
from tests.dashboard.jobs import Played, played

MIGRATED = "((A B) (C D))"


def test_a_migration_is_watched(browser: Browser, tmp_path: Path) -> None:
    """Both plans are in one graph, with what they share, what each serves, progress and end; then one plan again."""
    job = played(tmp_path / "ckpt", lanes=2)
    with job.engine as engine, engine.dashboard(port=0) as dashboard, opened(browser, dashboard) as page:
        page.clock.install()
        expect(page.locator("main")).to_have_text("There is nothing to see yet: the job has not finished a step yet.")
        job.push(4)
        expect(page.locator(".node.join")).to_have_count(3)
        engine.migrate("q", MIGRATED, strategy="parallel_track")
        job.push(2)
        expect(page.get_by_role("heading", name="Migration by parallel_track since step 4")).to_be_visible()
        expect(page.locator(".node.old")).to_have_count(2)
        expect(page.locator(".node.new")).to_have_count(2)
        expect(page.locator(".node.join.both")).to_have_count(1)
        expect(page.locator(".node.join.both")).to_contain_text("A by A.k: 120, shared")
        expect(page.locator(".migration")).to_contain_text("results with an old row")
        expect(page.locator(".migration")).to_contain_text("results of new rows only")
        expect(page.locator(".migration")).to_contain_text("of event time")
        before = _progress(page)
        job.push(10)
        page.wait_for_function("before => document.querySelector('.migration meter')?.value > before", arg=before)
        job.push(15)
        expect(page.locator(".migration")).to_have_count(0)
        expect(page.locator(".ended")).to_contain_text("by parallel_track")
        expect(page.locator(".node.join")).to_have_count(
            5
        )  # Whoever has just approved a plan sees both for ten seconds.
        page.clock.fast_forward(10_000)
        expect(page.locator(".node.join")).to_have_count(3)
        expect(page.locator(".ended")).to_have_count(0)
        expect(page.locator("code.plan").first).to_have_text(MIGRATED)


def _progress(page: Page) -> float:
    return float(page.locator(".migration meter").get_attribute("value") or 0)


def test_a_plan_is_approved_and_seen_to_change(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    with (
        job.engine as engine,
        engine.dashboard(port=0, control=True, token=TOKEN) as dashboard,
        opened(browser, dashboard) as page,
    ):
        plan = _proposed(job)
        expect(page.get_by_role("heading", name="The optimizer proposes another plan")).to_be_visible()
        assert TOKEN not in page.url
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("is in the log")).to_be_visible()
        job.push()
        expect(page.get_by_text("Command 1, approve: is done")).to_be_visible()
        job.push(25, B=120, C=60, D=4)
        expect(page.locator("code.plan").first).to_have_text(plan)
        expect(page.locator(".migration")).to_have_count(0)
        assert engine.report().query("q").plan == plan


def _proposed(job: Played) -> str:
    """Push until a plan is proposed; the plan."""
    job.engine.optimize("q", mode="ask", review="1 second", effort=1.0)
    for _ in range(60):
        job.push(B=120, C=60, D=4)
        optimizer = job.engine.report().query("q").optimizer
        if optimizer.waits and optimizer.proposal is not None:
            return optimizer.proposal.plan
    raise AssertionError(optimizer)


def test_commands_are_given_and_refused(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    job.push(3)
    with (
        job.engine as engine,
        engine.dashboard(port=0, control=True, token=TOKEN) as dashboard,
        opened(browser, dashboard) as page,
    ):
        page.get_by_text("Commands", exact=True).click()
        page.locator("#migrate-plan").fill("((A C) (B D))")
        page.locator("#migrate-strategy").select_option("moving_state")
        page.get_by_role("button", name="Migrate").click()
        expect(page.get_by_text("Command 1, migrate: is in the log")).to_be_visible()
        job.push()
        expect(page.get_by_text("Command 1, migrate: is done in step 3")).to_be_visible()
        page.get_by_role("button", name="Pin", exact=True).click()
        page.locator("#rescale-lanes").fill("3")
        page.get_by_role("button", name="Rescale").click()
        page.locator("#add-query").fill("more")
        page.locator("#add-sql").fill("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_text("Command 4, add_query: is in the log")).to_be_visible()
        job.push()
        expect(page.get_by_text("Command 4, add_query: is done")).to_be_visible()
        found = engine.report()
        assert (found.query("q").optimizer.pinned, found.lanes, sorted(found.queries)) == (True, 3, ["more", "q"])
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Drop", exact=True).click()
        expect(page.get_by_text("Command 5, drop_query: is in the log")).to_be_visible()
        job.push()
        expect(page.locator("#query-name")).to_have_text("more")


def test_without_the_token_buttons_say_why_they_are_off(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    job.push(2)
    with job.engine as engine, engine.dashboard(port=0) as dashboard, opened(browser, dashboard) as page:
        page.get_by_text("Commands", exact=True).click()
        expect(page.get_by_role("button", name="Migrate")).to_be_disabled()
        expect(page.locator("#why-not")).to_contain_text("--control")


def test_hostile_names_and_values_are_text(browser: Browser, tmp_path: Path) -> None:
    text = '<img src=x onerror="document.title=1"><b>'
    sql = f"SELECT A.k, '{text}' AS t FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k WINDOW 20 SECONDS"
    job = played(tmp_path / "ckpt", sql, query=HOSTILE)
    job.push(3)
    with (
        job.engine as engine,
        engine.dashboard(port=0) as dashboard,
        opened(browser, dashboard, viewport={"width": 360, "height": 700}, color_scheme="dark") as page,
    ):
        expect(page.locator("#query-name")).to_have_text(HOSTILE)
        expect(page.locator("#sql")).to_contain_text(text)
        assert page.title() == "midstream"
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "wider than the screen"


def test_keys_choose_and_focus_is_kept(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    job.push(2)
    with job.engine as engine, engine.dashboard(port=0) as dashboard, opened(browser, dashboard) as page:
        expect(page.locator("#query-name")).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_text("To the figures")).to_be_focused()
        page.keyboard.press("/")
        expect(page.locator("#query")).to_be_focused()
        page.locator("#operators summary").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("table", name="States")).to_be_visible()
        job.push()
        expect(page.locator("#standing")).to_contain_text("step 2")
        expect(page.get_by_role("table", name="States")).to_be_visible()


def test_a_thousand_queries_open_at_once(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is asked for and drawn is bounded by counts; the seconds are only told."""
    engine = ms.Engine()
    for stream in "AB":
        engine.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    for number in range(1000):
        engine.add_query(f"q{number:03d}", f"SELECT A.k FROM A, B WHERE A.k = B.k WINDOW {2 + number % 60} SECONDS")
    rows = pa.table({"k": range(50), "ts": pa.array(range(50), pa.timestamp("us"))})
    engine.push({"A": rows, "B": rows})
    engine.save(tmp_path / "saved")
    with Dashboard([tmp_path / "saved"], Access(), port=0) as dashboard:
        began = time.perf_counter()
        with opened(browser, dashboard) as page:
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            expect(page.locator(".plan-graph")).to_be_visible()
            seconds = time.perf_counter() - began
            size = page.evaluate("document.querySelectorAll('*').length")
            expect(page.locator("#queries option")).to_have_count(1000)
            answers = page.evaluate("performance.getEntriesByType('resource').map(e => [e.name, e.transferSize])")
            sent = sum(length for _, length in answers)
    with capsys.disabled():
        print(f"\n1,000 queries: drawn after {seconds:.2f} s, {len(answers)} requests, {sent:,} bytes, {size} elements")
    assert len(answers) < 30 and sent < 1_000_000 and size < 3_000
