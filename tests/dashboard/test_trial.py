"""What is tried without changing the job: SQL over kept rows, the plan of a new query, the cost of a move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard import trial
from midstream.dashboard.api import Api
from midstream.dashboard.app import application
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from tests.dashboard.browser import TOKEN, opened
from tests.dashboard.jobs import Played, played

CROSSED = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.v = C.v WINDOW 20 SECONDS"


@pytest.fixture
def job(tmp_path: Path) -> Played:
    found = played(tmp_path / "ckpt", CROSSED, "((A B) C)")
    found.push(4)
    return found


def tried(folder: Path, **value: Any) -> dict[str, Any]:
    return Api([Checkpoint.open(folder / "ckpt")]).attempt(0, value)


def test_sql_is_answered_over_the_rows_that_are_kept(job: Played, tmp_path: Path) -> None:
    found = tried(tmp_path, of="rows", sql="SELECT count(*) AS n, max(k) < 100 AS few FROM A")
    assert found == {"columns": ["n", "few"], "rows": [["80", "True"]], "more": False}
    many = tried(tmp_path, of="rows", sql='SELECT a.k FROM "A" a, B')
    assert (len(many["rows"]), many["more"]) == (trial.ROWS_SHOWN, True)
    assert job.engine.report().step == 3


def test_a_row_that_queries_of_two_groups_keep_is_one_row_with_its_own_columns(job: Played, tmp_path: Path) -> None:
    job.engine.add_query("keyed", "SELECT A.k FROM A, D WHERE A.k = D.k WINDOW 20 SECONDS")
    job.push(2)
    found = tried(tmp_path, of="rows", sql="SELECT count(*), count(v), count(ts) FROM B")
    assert found["rows"] == [["120", "120", "120"]]
    listed = {one["name"]: one for one in Api([Checkpoint.open(tmp_path / "ckpt")]).view(0, "trial", {})["tables"]}
    for name, table in listed.items():
        every = tried(tmp_path, of="rows", sql=f"SELECT * FROM {name}")
        assert every["columns"] == table["columns"]
        counted = tried(tmp_path, of="rows", sql=f"SELECT count(*) FROM {name}")
        assert counted["rows"] == [[str(table["rows"])]]
    assert listed["A"]["columns"] == ["k", "ts"]  # no query reads v


def test_text_of_a_query_with_a_window_is_answered_with_what_to_leave_out(job: Played, tmp_path: Path) -> None:
    with pytest.raises(ms.QueryError) as refused:
        tried(tmp_path, of="rows", sql=CROSSED)
    assert "leave out WINDOW" in refused.value.remedy


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM os",
        "COPY (SELECT 1) TO 'out.csv'",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "DROP VIEW A",
        "PRAGMA version",
        "CREATE TABLE t AS SELECT 1",
        "SELECT getenv('HOME')",
        "SELECT",
        "",
    ],
)
def test_sql_reaches_nothing_else(sql: str, job: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ms.QueryError):
        tried(tmp_path, of="rows", sql=sql)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_sql_that_takes_too_long_ends(job: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "LONGEST", 0.5)
    with pytest.raises(ms.QueryError, match="stopped the query after"):
        tried(tmp_path, of="rows", sql="SELECT count(*) FROM range(100000) a, range(100000) b WHERE a.range < b.range")


def test_a_new_query_s_plan_says_what_it_would_share(job: Played, tmp_path: Path) -> None:
    found = tried(tmp_path, of="plan", sql=CROSSED.replace("20", "10"))
    assert (found["plan"], found["shares_with"], found["cross"]) == ("((A B) C)", ["q"], [])
    assert {one["name"]: one["rows"] for one in found["shared"]}["A by A.k"] == 80
    alone = tried(tmp_path, of="plan", sql="SELECT A.k FROM A, D WHERE A.v < 0.5 WINDOW 1 SECOND")
    assert alone["shares_with"] == [] and len(alone["cross"]) == 1
    assert [query.name for query in job.engine.report().asked] == ["q"]
    with pytest.raises(ms.MidstreamError, match="nobody"):
        tried(tmp_path, of="plan", sql="SELECT nobody.k FROM nobody")


def test_a_move_is_estimated(job: Played, tmp_path: Path) -> None:
    found = tried(tmp_path, of="move", query="q", plan="((A C) B)")
    assert found["cost"] > found["running"] > 0 and found["strategy"]
    assert found["cross"] == ["no condition ties A and C: every row of the one meets every row of the other"]
    assert tried(tmp_path, of="move", query="q", plan="(A (B C))")["cross"] == []
    with pytest.raises(ms.MidstreamError):
        tried(tmp_path, of="move", query="q", plan="((A B")


def test_where_others_reach_the_page_the_token_is_needed(job: Played, tmp_path: Path) -> None:
    body = {"of": "rows", "sql": "SELECT count(*) FROM A"}

    def status(access: Access, **headers: str) -> int:
        app = application([Checkpoint.open(tmp_path / "ckpt")], access)
        return TestClient(app, base_url="http://127.0.0.1").post("/api/0/trial", json=body, headers=headers).status_code

    assert status(Access()) == 200
    assert status(Access(), Origin="http://evil.example") == 403
    assert status(Access("0.0.0.0")) == 403
    assert status(Access("0.0.0.0", TOKEN)) == 403
    assert status(Access("0.0.0.0", TOKEN), **{"X-Midstream-Token": TOKEN}) == 200


@pytest.mark.verify
def test_the_box_answers_and_plans(browser: Browser, job: Played, tmp_path: Path) -> None:
    with (
        job.engine,
        Dashboard([tmp_path / "ckpt"], Access(), port=0) as dashboard,
        opened(browser, dashboard, "#/0/trial") as page,
    ):
        expect(page.get_by_role("table", name="Tables")).to_contain_text("80")
        page.locator("#sql-text").fill("SELECT count(*) AS n FROM A")
        page.get_by_role("button", name="Run it over kept rows").click()
        expect(page.get_by_role("table", name="Answer")).to_contain_text("80")
        page.locator("#sql-text").fill(CROSSED.replace("20", "10"))
        page.get_by_role("button", name="Show the plan it would get").click()
        expect(page.locator(".tried .plan-graph")).to_be_visible()
        expect(page.locator(".tried")).to_contain_text("shares with")
        page.locator("#sql-text").fill("SELECT nobody")
        page.get_by_role("button", name="Run it over kept rows").click()
        expect(page.locator(".tried [role=alert]")).to_be_visible()


@pytest.mark.verify
def test_a_plan_taken_by_hand_shows_its_cost_and_asks(browser: Browser, job: Played, tmp_path: Path) -> None:
    asked = list[str]()
    with (
        job.engine as engine,
        engine.dashboard(port=0, control=True, token=TOKEN) as dashboard,
        opened(browser, dashboard) as page,
    ):
        page.get_by_text("Commands", exact=True).click()
        page.locator("#migrate-plan").fill("((A C) B)")
        expect(page.locator("#migrate-estimate")).to_contain_text("times the running plan")
        expect(page.locator("#migrate-estimate")).to_contain_text("no condition ties A and C")
        page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
        page.get_by_role("button", name="Migrate", exact=True).click()
        page.wait_for_timeout(500)
        assert len(asked) == 1 and "every row" in asked[0]
        expect(page.locator(".notice")).to_have_count(0)
        page.locator("#migrate-plan").fill("(A (B C))")
        page.get_by_role("button", name="Migrate", exact=True).click()
        expect(page.get_by_text("Command 1, migrate: is in the log")).to_be_visible()
