"""A job as it was: every view shows the same kept step, and nothing that came later."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard.api import Api
from midstream.dashboard.views import views
from tests.dashboard.browser import TOKEN, opened
from tests.dashboard.jobs import Played, played

OLD, NEW = "(((A B) C) D)", "((A B) (C D))"


def changed(folder: Path) -> Played:
    """Seven steps; the plan is another one from step 4 on."""
    job = played(folder)
    job.engine.optimize("q", mode="ask", review="1 second", effort=1.0)
    job.push(4)
    job.engine.migrate("q", NEW, strategy="moving_state")
    job.push(3)
    return job


def shown(page: Page) -> tuple[str, str]:
    return page.locator("code.plan").first.inner_text(), page.locator("#standing").inner_text()


def test_no_view_shows_of_a_step_what_came_later(tmp_path: Path) -> None:
    """What each view says of a step is what it said when that step was the newest one, but for times of the clock."""
    with (job := played(tmp_path / "ckpt")).engine as engine:
        said = {}
        for step in range(4):
            if step == 2:
                engine.migrate("q", NEW, strategy="moving_state")
            job.push()
            said[step] = everything(tmp_path / "ckpt")
        for step, before in said.items():
            assert everything(tmp_path / "ckpt", step=str(step)) == before, step
        assert said[1]["plan"] != said[3]["plan"]


def everything(folder: Path, **options: str) -> dict[str, dict[str, object]]:
    """What all views say to somebody who has just come."""
    api = Api([Checkpoint.open(folder)])
    return {name: _without_times(api.view(0, name, options)) for name in views()}


def _without_times(value: dict[str, object]) -> dict[str, object]:
    return {name: one for name, one in value.items() if name not in ("times", "phases", "summary")}


def test_the_page_goes_back_and_forth(browser: Browser, tmp_path: Path) -> None:
    with (
        (job := changed(tmp_path / "ckpt")).engine as engine,
        engine.dashboard(port=0, control=True, token=TOKEN) as dashboard,
        opened(browser, dashboard) as page,
    ):
        expect(page.locator("code.plan").first).to_have_text(NEW)
        page.keyboard.press("[")
        expect(page.locator("#standing")).to_contain_text("step 5")
        slider = page.get_by_role("slider", name="Step to look at")
        slider.focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#standing")).to_contain_text("step 3")
        expect(page.locator("#standing")).to_contain_text("as it was")
        expect(page.locator("code.plan").first).to_have_text(OLD)
        expect(slider).to_have_attribute("aria-valuetext", "step 3")
        page.get_by_text("Commands", exact=True).click()
        expect(page.locator("#why-not")).to_contain_text("a step of the past is shown")
        page.locator("#view-decisions").click()
        expect(page.locator(".mark.migrations")).to_have_count(0)
        expect(page.locator("code.plan").first).to_have_text(OLD)
        job.push()
        page.get_by_role("button", name="A step forth").click()
        expect(page.locator("#standing")).to_contain_text("step 4")
        expect(page.locator("code.plan").first).to_have_text(NEW)
        expect(page.locator(".mark.migrations")).to_have_count(2)
        slider.focus()
        page.keyboard.press("End")
        expect(page.locator("#standing")).to_contain_text("step 7")
        expect(page.locator("#standing")).to_contain_text("running")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_step_that_is_not_kept_leads_to_the_newest(browser: Browser, tmp_path: Path) -> None:
    with (job := played(tmp_path / "ckpt")).engine as engine, engine.dashboard(port=0) as dashboard:
        job.push(2)
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{dashboard.url}#/0/plan?step=77")
        expect(page.get_by_role("alert")).to_contain_text("77")
        page.get_by_role("button", name="To the newest step").click()
        expect(page.locator("#standing")).to_contain_text("running")
        context.close()
