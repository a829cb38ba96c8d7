"""Every view draws every kind of job, in the midst of migrations too, and its scripts fail nowhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import midstream as ms
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from midstream.dashboard.views import views
from tests.dashboard.browser import opened
from tests.dashboard.jobs import SQL, played

TWO = "SELECT A.k FROM A, B WHERE A.k = B.k"
COUNTED = "SELECT A.k FROM A [ROWS {0}], B [ROWS {0}] WHERE A.k = B.k"
THREE = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k"


def without_queries(engine: ms.Engine) -> None:
    engine.drop_query("q")


def counting_rows(engine: ms.Engine) -> None:
    engine.add_query("ten", COUNTED.format(10))
    engine.add_query("twenty", f"{COUNTED.format(20)} AND A.v > 0.5")


def in_parts(engine: ms.Engine) -> None:
    engine.reshare("push_down")
    engine.add_query("narrow", f"{TWO} AND A.v > 0.5 WINDOW 5 SECONDS")
    engine.add_query("wide", f"{TWO} AND A.v < 0.7 WINDOW 9 SECONDS")


def aggregated(engine: ms.Engine) -> None:
    sql = "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 5 SECONDS EVERY 1 SECOND"
    engine.add_query("sums", sql)


def over_nodes(engine: ms.Engine) -> None:
    for name, way in (("one", "psp_d"), ("two", "hash_hops"), ("three", "psp")):
        engine.add_query(name, f"{THREE} AND A.v <> {len(name)} WINDOW 4 SECONDS", spread=way, nodes=3)


def over_lanes(engine: ms.Engine) -> None:
    engine.rescale(5)
    engine.pin("q")


def moved_by(strategy: str) -> Callable[[ms.Engine], None]:
    def move(engine: ms.Engine) -> None:
        engine.migrate("q", "((A B) (C D))", strategy=strategy)

    move.__name__ = strategy
    return move


KINDS = [without_queries, counting_rows, in_parts, aggregated, over_nodes, over_lanes]
MOVES = [moved_by(name) for name in ("parallel_track", "hybmig", "jisc", "gms")]


@pytest.mark.parametrize("change", [*KINDS, *MOVES], ids=lambda change: change.__name__)
def test_every_view_is_drawn(change: Callable[[ms.Engine], None], browser: Browser, tmp_path: Path) -> None:
    with (job := played(tmp_path / "ckpt", SQL)).engine as engine:
        job.push(4)
        change(engine)
        job.push(3)
        queries = [*engine.report().queries][-3:] or [""]
        with Dashboard([tmp_path / "ckpt"], Access(), port=0) as dashboard, opened(browser, dashboard) as page:
            for view, query in product(views(), queries):
                page.evaluate("to => { location.hash = to }", f"#/0/{view}?query={query}")
                drawn = (
                    "([view, query]) => document.body.dataset.view === view && document.body.dataset.options === query"
                )
                page.wait_for_function(drawn, arg=[view, f"query={query}"])
                expect(page.locator(".problem")).to_have_count(0)
                expect(page.locator("main")).not_to_be_empty()


def test_joins_of_parts_are_told(browser: Browser, tmp_path: Path) -> None:
    with (job := played(tmp_path / "ckpt", SQL)).engine as engine:
        in_parts(engine)
        job.push(3)
        with Dashboard([tmp_path / "ckpt"], Access(), port=0) as dashboard, opened(browser, dashboard) as page:
            page.evaluate("location.hash = '#/0/sharing?query=wide'")
            joins = page.get_by_role("table", name="Joins of parts")
            expect(joins).to_contain_text("A: A.v < 0.7 and not (A.v > 0.5)")
            expect(joins).to_contain_text("A: 9 s, B: 9 s")
