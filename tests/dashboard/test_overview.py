"""The page that comes first: each job with its state in colour, its pace, its streams and queries, and its faults."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard.api import Api
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from tests.dashboard.browser import opened
from tests.dashboard.jobs import Played, played

ROOT = Path(__file__).resolve().parents[2]
KILLED = """
import sys
from pathlib import Path
from tests.dashboard.jobs import played
job = played(Path(sys.argv[1]))
job.push(3)
print("pushed", flush=True)
sys.stdin.read()
"""


def killed(folder: Path) -> None:
    """A job whose process was killed after three steps."""
    command = [sys.executable, "-c", KILLED, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "pushed\n"
        os.kill(process.pid, signal.SIGKILL)


def jobs(folder: Path) -> Played:
    """Three jobs: one runs, one was stopped, one failed."""
    running = played(folder / "running")
    running.push(3)
    stopped = played(folder / "stopped")
    with stopped.engine:
        stopped.push(2)
    failed = played(folder / "failed")
    failed.push(2)
    failed.engine.close(OSError("no space left"))
    return running


def test_each_job_has_the_state_that_status_reports(tmp_path: Path) -> None:
    running = jobs(tmp_path)
    killed(tmp_path / "killed")
    names = ["running", "stopped", "failed", "killed"]
    checkpoints = [Checkpoint.open(tmp_path / name) for name in names]
    with running.engine:
        found = Api(checkpoints).jobs()["jobs"]
        assert [one["life"]["word"] for one in found] == names
        for one, checkpoint in zip(found, checkpoints, strict=True):
            status = checkpoint.status(checkpoint.report())
            assert {name: one["life"][name] for name in ("state", "since", "reason", "process")} == {
                name: status[name] for name in ("state", "since", "reason", "process")
            }
    assert found[2]["life"]["reason"] == "OSError: no space left"
    assert [one["step"] for one in found] == [2, 1, 1, 2]


def test_a_job_before_its_first_step_and_a_damaged_one_are_listed(tmp_path: Path) -> None:
    with played(tmp_path / "new").engine, played(tmp_path / "damaged").engine as engine:
        engine.close()
        listed = Api([Checkpoint.open(tmp_path / "new"), Checkpoint.open(tmp_path / "damaged")])
        for file in (tmp_path / "damaged" / "manifests").iterdir():
            file.write_bytes(b"{}")
        new, damaged = listed.jobs()["jobs"]
    assert (new["life"]["word"], new["error"]) == ("running", "the job has not finished a step yet")
    assert damaged["error"]


@pytest.mark.verify
def test_the_overview_comes_first_and_leads_on(browser: Browser, tmp_path: Path) -> None:
    running = jobs(tmp_path)
    killed(tmp_path / "killed")
    places = [tmp_path / name for name in ("running", "stopped", "failed", "killed")]
    with running.engine, Dashboard(places, Access(), port=0) as dashboard, opened(browser, dashboard, "") as page:
        for word in ("running", "stopped", "failed", "killed"):
            expect(page.get_by_role("table", name="Jobs").locator(f".badge.{word}")).to_have_text(word)
        expect(page.locator("#standing .badge")).to_have_text("running")
        good, bad = (
            page.locator(f"main td .badge.{word}").evaluate("one => getComputedStyle(one).backgroundColor")
            for word in ("running", "killed")
        )
        assert good != bad
        expect(page.get_by_role("table", name="Queries")).to_contain_text("(((A B) C) D)")
        page.get_by_role("button", name="failed", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("OSError: no space left")
        page.get_by_role("button", name="killed", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("it was killed")
        page.get_by_role("button", name="q", exact=True).click()
        expect(page.locator(".plan-graph")).to_be_visible()


@pytest.mark.verify
def test_charts_have_clock_times_and_legends_have_values(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    with job.engine as engine:
        job.push(5)
    with Dashboard([tmp_path / "ckpt"], Access(), port=0) as dashboard, opened(browser, dashboard, "") as page:
        legend = page.locator(".u-legend").first
        expect(legend).to_contain_text(re.compile(r"4, \d\d:\d\d:\d\d"))
        assert page.locator(".u-legend .u-value").all_inner_texts() and not [
            text for text in page.locator(".u-legend .u-value").all_inner_texts() if text in ("", "--")
        ]
        page.evaluate("location.hash = '#/0/plan'")
        expect(page.locator(".u-legend").first).to_contain_text(re.compile(r"4, \d\d:\d\d:\d\d"))
    assert engine.report().step == 4


@pytest.mark.verify
def test_faults_are_shown_with_their_text(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    with job.engine as engine, engine.dashboard(port=0) as dashboard, opened(browser, dashboard, "") as page:
        job.push(3)
        engine.push({"A": [{"k": "no number", "v": 1.0, "ts": 4_000_000}]})
        expect(page.locator(".faults")).to_contain_text("stream A: 1 row could not be read")
        for second in (5, 6):
            engine.push({"A": [{"k": "no number", "v": 1.0, "ts": second * 1_000_000}]})
        expect(page.locator(".faults li")).to_have_count(1)
        expect(page.locator(".faults")).to_contain_text("step 5")
        expect(page.locator(".faults")).to_contain_text("(and 2 times before, since step 3)")
        expect(page.locator("main")).to_contain_text("over a day")


def _hold(held: list[Route], route: Route) -> None:
    held.append(route)


@pytest.mark.verify
def test_a_slow_answer_is_never_drawn_in_another_view(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    with job.engine as engine, engine.dashboard(port=0) as dashboard, opened(browser, dashboard, "") as page:
        job.push(3)
        expect(page.locator("main")).to_contain_text("rows a second")
        held: list[Route] = []
        page.route("**/api/0/views/**", partial(_hold, held))
        page.evaluate("location.hash = '#/0/steps'")
        page.wait_for_timeout(500)
        page.evaluate("location.hash = '#/0/plan'")
        expect(page.locator("main")).to_have_attribute("aria-busy", "true")
        page.wait_for_timeout(500)
        expect(page.locator("#view-plan")).to_have_attribute("aria-current", "page")
        late = [one for one in held if "/views/plan" not in one.request.url]
        assert late and len(late) < len(held)
        for one in held:
            if one not in late:
                one.continue_()
        expect(page.locator(".plan-graph")).to_be_visible()
        expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
        for one in late:
            one.continue_()
        page.wait_for_timeout(500)
        page.unroute("**/api/0/views/**")
        expect(page.locator(".plan-graph")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.verify
@pytest.mark.parametrize("width", [390, 1280])
def test_no_screen_is_too_narrow(width: int, browser: Browser, tmp_path: Path) -> None:
    """The header takes at most a quarter of a phone, nothing is wider than the screen, and no column is one letter."""
    running = jobs(tmp_path)
    with (
        running.engine as engine,
        Dashboard([tmp_path / "running", tmp_path / "failed"], Access(), port=0) as dashboard,
    ):
        engine.optimize("q", mode="ask", review="1 second", effort=1.0)
        running.push(6, B=120, C=60, D=4)
        size = {"width": width, "height": 844}
        with opened(browser, dashboard, "", viewport=size) as page:
            for view in ("overview", "plan", "decisions", "steps", "rows", "sharing", "lanes", "queries"):
                page.evaluate("view => { location.hash = `#/0/${view}` }", view)
                page.wait_for_function("view => document.body.dataset.view === view", arg=view)
                assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view
                assert page.evaluate("document.querySelector('header').offsetHeight <= innerHeight / 4"), view
                assert page.evaluate("document.querySelector('nav').offsetHeight < 60"), view
                cells = "[...document.querySelectorAll('.scroll td')].filter(one => one.innerText.length > 2)"
                assert page.evaluate(f"{cells}.filter(one => one.offsetWidth < 30).map(one => one.innerText)") == [], (
                    view
                )
