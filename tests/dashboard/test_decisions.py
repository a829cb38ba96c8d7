"""The view of decisions: what reviews said is shown as it was said, and answered from there."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard.api import Api
from midstream.model.errors import MidstreamError
from midstream.model.events import PlanReviewed
from tests.dashboard.browser import HOSTILE, TOKEN, opened
from tests.dashboard.jobs import Played, played

RATES = {"B": 120, "C": 60, "D": 4}
VIEW = "#/0/decisions"


def reviewed(folder: Path, policy: str = "lambda_chart", query: str = "q", steps: int = 14) -> Played:
    """A job whose reviews wait for answers; the streams' rates change half-way."""
    job = played(folder, query=query)
    job.engine.optimize(query, mode="ask", review="1 second", effort=1.0, policy=policy)
    job.push(steps // 2, **RATES)
    job.push(steps - steps // 2, B=40, C=90, D=30)
    return job


def test_figures_are_those_of_the_reviews(tmp_path: Path) -> None:
    with (job := reviewed(tmp_path / "ckpt")).engine as engine:
        own = [event for event in engine.events if isinstance(event, PlanReviewed)]
        view = Api([Checkpoint.open(tmp_path / "ckpt")]).view
        found = view(0, "decisions", {})
        assert len(own) > 1  # One before the rates change and one after; what stays true is reported once.
        assert [one["step"] for one in found["reviews"]] == [event.step for event in own]
        assert [one["real"] for one in found["reviews"]] == [event.figures["real"] for event in own]
        assert found["shown"]["plans"] == list(own[-1].plans)
        assert view(0, "decisions", {"review": str(own[0].step)})["shown"]["step"] == own[0].step
        six = found["panels"]
        assert len(six) == 6 and {len(row) for one in six for row in one["cells"]} == {six[0]["k"]}
        # At most one round a step; a review that finds what is proposed already leaves no event.
        assert len(own) <= sum(one["count"] for one in six[0]["rounds"]) <= 14
        last = own[-1].figures["sources"]
        assert six[0]["path"][-1] == [last["A"]["rate"], last["B"]["rate"]]
        assert job.engine.report().query("q").optimizer.reason == found["reason"]
        with pytest.raises(MidstreamError, match="is not a step"):
            view(0, "decisions", {"review": "x"})


def test_a_query_sees_no_other_query_s_decisions(tmp_path: Path) -> None:
    with (job := reviewed(tmp_path / "ckpt")).engine as engine:
        engine.add_query("other", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS")
        engine.pin("other")
        job.push()
        view = Api([Checkpoint.open(tmp_path / "ckpt")]).view
        own, other = (view(0, "decisions", {"query": name}) for name in ("q", "other"))
        assert not other["reviews"] and other["shown"] is None
        assert [one["event"] for one in other["others"]] == ["query_added", "plan_pinned"]
        assert all(one.get("query") != "other" for one in own["others"])


def test_a_decision_is_looked_back_at_and_answered(browser: Browser, tmp_path: Path) -> None:
    """An older review is chosen by key, another plan of its table is migrated to, the optimizer is set otherwise."""
    with (
        (job := reviewed(tmp_path / "ckpt")).engine as engine,
        engine.dashboard(port=0, control=True, token=TOKEN) as dashboard,
        opened(browser, dashboard, VIEW) as page,
    ):
        own = [event for event in engine.events if isinstance(event, PlanReviewed)]
        expect(page.locator("#review-of")).to_contain_text(f"Review in step {own[-1].step}")
        expect(page.locator(".mark.reviews")).to_have_count(len(own))
        expect(page.locator(".panel")).to_have_count(6)
        expect(page.locator(".panel").first.locator(".path")).to_have_count(1)
        page.locator(f"#mark-reviews-{own[0].step}").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#review-of")).to_contain_text(f"Review in step {own[0].step}")
        expect(page.locator(f"#mark-reviews-{own[0].step}")).to_be_focused()
        to = next(one["plan"] for one in own[0].plans if one["plan"].startswith("((") and one["plan"] != own[-1].plan)
        page.get_by_label("A migration to one of these goes by").select_option("moving_state")
        row = page.get_by_role("row").filter(has=page.get_by_text(to, exact=True))
        row.get_by_role("button", name="Migrate").click()
        expect(page.get_by_text("Command 1, migrate: is in the log")).to_be_visible()
        job.push()
        expect(page.get_by_text("Command 1, migrate: is done")).to_be_visible()
        assert engine.report().query("q").plan == to
        page.get_by_text("Commands", exact=True).click()
        page.get_by_label("Mode").select_option("suggest")
        page.get_by_label("Policy").select_option("adaptive")
        page.get_by_role("button", name="Set", exact=True).click()
        expect(page.get_by_text("Command 2, optimize: is in the log")).to_be_visible()
        job.push()
        expect(page.get_by_text("Command 2, optimize: is done")).to_be_visible()
        optimizer = engine.report().query("q").optimizer
        assert (optimizer.mode, optimizer.policy) == ("suggest", "adaptive")
        kept = Checkpoint.open(tmp_path / "ckpt").manifest().optimizations["q"].settings
        assert kept is not None and kept.review == 1_000_000


def test_a_proposal_is_rejected_from_there(browser: Browser, tmp_path: Path) -> None:
    with (
        (job := reviewed(tmp_path / "ckpt")).engine as engine,
        engine.dashboard(port=0, control=True, token=TOKEN) as dashboard,
        opened(browser, dashboard, VIEW) as page,
    ):
        page.get_by_role("button", name="Reject").click()
        expect(page.get_by_text("Command 1, reject: is in the log")).to_be_visible()
        job.push()
        expect(page.get_by_text("Command 1, reject: is done")).to_be_visible()
        expect(page.locator("#proposed")).to_have_count(0)


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    with (
        reviewed(tmp_path / "ckpt", query=HOSTILE).engine as engine,
        engine.dashboard(port=0) as dashboard,
        opened(browser, dashboard, VIEW, viewport={"width": 360, "height": 700}, color_scheme="dark") as page,
    ):
        expect(page.locator("#query-name")).to_have_text(HOSTILE)
        expect(page.locator("#review-of")).to_be_visible()
        expect(page.get_by_role("button", name="Migrate").first).to_be_disabled()
        assert page.title() == "midstream"
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "wider than the screen"
