"""What an operator meets first: jobs that come later or have one name, pictures and texts that say what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard.api import Api
from midstream.dashboard.job_reading import JobReading, JobReadings
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from tests.dashboard.browser import TOKEN, opened
from tests.dashboard.jobs import SQL, played


def test_the_newest_of_the_listed_steps_is_the_one_that_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = played(tmp_path / "ckpt")
    job.push(2)
    listed = JobReadings.steps

    def after_one_more(self: JobReadings, seen: JobReading | None = None) -> tuple[int, ...]:
        job.push(1)
        return listed(self, seen)

    with job.engine:
        api = Api([Checkpoint.open(tmp_path / "ckpt")])
        api.overview(0, {})
        monkeypatch.setattr(JobReadings, "steps", after_one_more)
        found = api.overview(0, {})
    assert found["steps"][-1] == found["step"]


@pytest.mark.verify
def test_a_job_that_begins_after_its_dashboard_appears(browser: Browser, tmp_path: Path) -> None:
    place = tmp_path / "later"
    with Dashboard([place], Access(), port=0) as dashboard, opened(browser, dashboard, "") as page:
        expect(page.locator("main")).to_contain_text("there is no checkpoint here yet")
        assert not place.exists()
        with played(place).engine as engine:
            engine.push({"A": [{"k": 1, "v": 1.0, "ts": 1_000_000}]})
            expect(page.locator("#standing")).to_contain_text("running step 0")


def test_a_query_in_a_chain_of_its_own_shares_with_none(tmp_path: Path) -> None:
    with played(tmp_path / "ckpt").engine as engine:
        engine.push({})
        api = Api([Checkpoint.open(tmp_path / "ckpt")])
        assert api.view(0, "sharing", {})["alone"] == {"count": 1, "first": ["q"]}
        engine.add_query("other", SQL.replace("20", "30"))
        engine.push({})
        assert api.view(0, "sharing", {})["alone"]["count"] == 0


@pytest.mark.verify
def test_a_narrow_table_is_seen_whole_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    job.push(2)
    size = {"width": 390, "height": 844}
    with (
        job.engine as engine,
        engine.dashboard(port=0) as dashboard,
        opened(browser, dashboard, "#/0/trial", viewport=size) as page,
    ):
        expect(page.get_by_role("columnheader", name="columns")).to_be_in_viewport(ratio=0.9)


@pytest.mark.verify
@pytest.mark.parametrize("width", [390, 1280])
def test_no_legend_and_no_label_of_a_chart_is_cut(width: int, browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    job.push(31)
    size = {"width": width, "height": 844}
    with (
        job.engine as engine,
        engine.dashboard(port=0) as dashboard,
        opened(browser, dashboard, "#/0/steps", viewport=size) as page,
    ):
        expect(page.locator(".step-bar").last).to_be_visible()
        expect(page.locator(".u-series").last).to_be_visible()
        right = "[...document.querySelectorAll('.u-series')].map(one => one.getBoundingClientRect().right)"
        assert max(page.evaluate(right)) <= width
        plots = "[...document.querySelectorAll('.uplot')].map(one => [one, one.querySelector('.u-over')])"
        edges = f"{plots}.map(all => all.map(one => one.getBoundingClientRect().right))"
        # Half of a clock time is as wide as this.
        assert min(whole - inner for whole, inner in page.evaluate(edges)) >= 28
        texts = "[...document.querySelectorAll('.step-bars text')].map(one => one.getBoundingClientRect())"
        assert page.evaluate(f"Math.min(...{texts}.map(one => one.left))") >= 0


@pytest.mark.verify
def test_jobs_whose_folders_have_one_name_are_told_apart(browser: Browser, tmp_path: Path) -> None:
    for name in ("here", "there"):
        with played(tmp_path / name / "ckpt").engine as engine:
            engine.push({})
    places = [tmp_path / name / "ckpt" for name in ("here", "there")]
    with Dashboard(places, Access(), port=0) as dashboard, opened(browser, dashboard, "") as page:
        jobs = page.get_by_role("table", name="Jobs")
        expect(jobs).to_contain_text("here/ckpt")
        expect(jobs).to_contain_text("there/ckpt")


@pytest.mark.verify
def test_before_anything_has_come_the_page_says_so(browser: Browser, tmp_path: Path) -> None:
    held = list[Route]()
    with played(tmp_path / "ckpt").engine as engine, engine.dashboard(port=0) as dashboard:
        engine.push({})
        page = browser.new_page()
        page.route("**/api/0*", lambda route: held.append(route))
        page.goto(dashboard.url)
        expect(page.locator("main")).to_have_text("Loading …")
        page.unroute_all(behavior="ignoreErrors")
        page.close()


@pytest.mark.verify
@pytest.mark.parametrize(("strategy", "old"), [("jisc", False), ("parallel_track", True)])
def test_the_caption_names_the_colours_that_the_picture_has(
    strategy: str, old: bool, browser: Browser, tmp_path: Path
) -> None:
    job = played(tmp_path / "ckpt")
    with job.engine as engine, engine.dashboard(port=0) as dashboard, opened(browser, dashboard) as page:
        job.push(4)
        engine.migrate("q", "((A B) (C D))", strategy=strategy)
        job.push(1)
        expect(page.locator(".migration")).to_be_visible()
        assert bool(page.locator(".node.old").count()) == old
        assert ("orange" in page.locator("figcaption").first.inner_text()) == old
        assert ("no longer runs" in page.locator("figcaption").first.inner_text()) != old


@pytest.mark.verify
def test_titles_are_cut_no_more_than_the_room_asks(browser: Browser, tmp_path: Path) -> None:
    long = "a_rather_long_name_of_a_column"
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine, engine.dashboard(port=0) as dashboard:
        for stream in "ABC":
            engine.create_stream(stream, f"{long} BIGINT, ts TIMESTAMP", timestamp="ts")
        on = f"A.{long} = B.{long} AND B.{long} = C.{long}"
        engine.add_query("q", f"SELECT A.{long} FROM A, B, C WHERE {on} WINDOW 9 SECONDS")
        engine.push({})
        with opened(browser, dashboard, viewport={"width": 1280, "height": 800}) as page:
            expect(page.locator(".node.join")).to_have_count(2)
            titles = [one for one in page.locator(".node .name").all_text_contents() if one.endswith("…")]
            assert titles and min(map(len, titles)) > 34
            assert page.evaluate("document.querySelector('.plan-graph').clientWidth <= main.clientWidth")


@pytest.mark.verify
def test_the_plan_of_a_tried_query_has_no_figures_of_others(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    job.push(3)
    with (
        job.engine,
        Dashboard([tmp_path / "ckpt"], Access(), port=0) as dashboard,
        opened(browser, dashboard, "#/0/trial") as page,
    ):
        page.get_by_role("button", name="Show the plan it would get").click()
        graph = page.locator(".tried .plan-graph")
        expect(graph).to_contain_text("A by A.k: 60")  # the rows are there already
        expect(graph).not_to_contain_text("comparisons")
        expect(graph).not_to_contain_text("a step")
        page.locator("#sql-text").fill(SQL.replace("A.k,", "A.kk,"))
        page.get_by_role("button", name="Show the plan it would get").click()
        expect(page.locator(".tried [role=alert]")).to_contain_text(re.compile(r"did you mean '\w\.\w'\?$"))


@pytest.mark.verify
def test_an_estimate_is_that_of_the_plan_that_is_typed(browser: Browser, tmp_path: Path) -> None:
    job = played(tmp_path / "ckpt")
    job.push(3)
    held = list[Route]()
    with (
        job.engine as engine,
        engine.dashboard(port=0, control=True, token=TOKEN) as dashboard,
        opened(browser, dashboard) as page,
    ):
        page.get_by_text("Commands", exact=True).click()
        page.locator("#migrate-plan").fill("((A B) (C D))")
        expect(page.locator("#migrate-estimate")).to_contain_text("times the running plan")
        page.route("**/trial", lambda route: held.append(route))
        page.locator("#migrate-plan").fill("(((B C) A) D)")
        expect(page.locator("#migrate-estimate")).to_have_text("Estimating …")
        page.unroute_all(behavior="ignoreErrors")


@pytest.mark.verify
def test_sql_is_shown_without_the_indentation_of_the_file_it_comes_from(browser: Browser, tmp_path: Path) -> None:
    sql = (
        SQL.replace(" FROM", "\n         FROM")
        .replace(" WHERE", "\n         WHERE")
        .replace(" AND", "\n           AND")
    )
    job = played(tmp_path / "ckpt", sql)
    with job.engine as engine, engine.dashboard(port=0) as dashboard, opened(browser, dashboard) as page:
        job.push(1)
        expect(page.locator("#sql")).to_contain_text("\nFROM A, B, C, D\nWHERE A.k = B.k\n  AND", use_inner_text=True)
