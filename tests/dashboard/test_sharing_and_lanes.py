"""The views of chains and of how evenly the work lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard.api import Api
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from midstream.dashboard.views.sharing_view import MEMBERS_SHOWN
from tests.dashboard.browser import HOSTILE, opened
from tests.dashboard.jobs import SECOND

JOINED = "SELECT A.k FROM A, B WHERE A.k = B.k"
EVIL = "<img src=x onerror=alert(1)>"
QUERIES = {
    "two": f"{JOINED} WINDOW 2 SECONDS",
    HOSTILE: f"{JOINED} AND A.note <> '{EVIL}' WINDOW 5 SECONDS",
    "nine": f"{JOINED} AND A.note <> '{EVIL}' AND B.v > 0.5 WINDOW 9 SECONDS",
}
RING = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 3 SECONDS"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three queries in a chain, and one over three nodes; most rows have one key, and so lie in one lane."""
    found = tmp_path_factory.mktemp("job") / "ckpt"
    with ms.Engine(checkpoint=found, lanes=4, sharing="mem_opt", durable=False) as engine:
        for name in "ABC":
            engine.create_stream(name, "k BIGINT, v DOUBLE, note VARCHAR, ts TIMESTAMP", timestamp="ts")
        for name, sql in QUERIES.items():
            engine.add_query(name, sql)
        engine.add_query("ring", RING, spread="psp_d", nodes=3)
        for second in range(12):
            draw = np.random.default_rng(second)
            engine.push({name: rows(draw, second) for name in "ABC"})
        yield found


def rows(draw: np.random.Generator, second: int, count: int = 20) -> pa.Table:
    keys = np.where(draw.random(count) < 0.8, 7, draw.integers(0, 50, count))
    times = np.sort(draw.integers(0, SECOND, count)) + second * SECOND
    columns = {"k": keys, "v": draw.random(count), "note": ["x"] * count}
    return pa.table({**columns, "ts": pa.array(times, pa.timestamp("us"))})


def view(folder: Path, name: str, **options: str) -> dict[str, Any]:
    return Api([Checkpoint.open(folder)]).view(0, name, options)


def test_a_chain_is_as_wide_as_its_queries_read(folder: Path) -> None:
    found = view(folder, "sharing")
    chain = found["chain"]
    assert (found["queries"], len(found["chains"]), found["alone"]) == (4, 1, {"count": 1, "first": ["ring"]})
    assert [(one["from"], one["to"], one["queries"]) for one in chain["slices"]] == [
        (0, 2 * SECOND, 3),
        (2 * SECOND, 5 * SECOND, 2),
        (5 * SECOND, 9 * SECOND, 1),
    ]
    assert [one["ending"] for one in chain["slices"]] == [["two"], [HOSTILE], ["nine"]]
    assert chain["slices"][0]["filter"] == {"A": None, "B": None}
    assert EVIL in chain["slices"][1]["filter"]["A"][0] and chain["slices"][1]["filter"]["B"] is None
    assert {name: one["reads"]["A"]["window"] for name, one in chain["queries"].items()} == {
        "two": 2 * SECOND, HOSTILE: 5 * SECOND, "nine": 9 * SECOND,
    }  # fmt: skip
    with pytest.raises(ms.MidstreamError, match="there is no chain"):
        view(folder, "sharing", chain="none such")


def test_of_many_queries_some_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    engine = ms.Engine()
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    for number in range(MEMBERS_SHOWN * 2 + 1):
        engine.add_query(f"q{number:03d}", f"{JOINED} WINDOW {number + 1} SECONDS")
    engine.push({})
    engine.save(tmp_path / "saved")
    chain = view(tmp_path / "saved", "sharing")["chain"]
    windows = [one["reads"]["A"]["window"] for one in chain["queries"].values()]
    assert (chain["members"], len(windows) <= MEMBERS_SHOWN) == (MEMBERS_SHOWN * 2 + 1, True)
    assert windows == sorted(windows) and windows[-1] == (MEMBERS_SHOWN * 2 + 1) * SECOND


def test_lanes_and_nodes_hold_what_the_report_says(folder: Path) -> None:
    found, report = view(folder, "lanes"), Checkpoint.open(folder).report()
    by_group = {one["name"]: one for one in found["groups"]}
    for name, group in by_group.items():
        held = next(one["values"] for one in group["figures"] if one["name"] == "rows held")
        numbers = [one["number"] for one in group["lanes"]]
        assert held == [report.by_lane[f"{name}.{number}"].rows for number in numbers]
    figures = {one["name"]: one["values"] for one in by_group[report_group(folder)]["figures"]}
    assert max(figures["rows of A"]) > 2 * sum(figures["rows of A"]) / 4, "one key has most rows"
    assert sum(figures["rows of A"]) == view(folder, "sharing")["chain"]["lineage"]["A"]["rows"]
    (ring,) = found["rings"]
    spread = report.query("ring").nodes
    assert spread is not None and (ring["name"], ring["scheme"]) == ("ring", "psp_d")
    assert [one["comparisons"] for one in ring["nodes"]] == [one.comparisons for one in spread.work]
    assert ring["balance"] == spread.balance


def report_group(folder: Path) -> str:
    return Checkpoint.open(folder).manifest().queries["two"].group


def test_both_are_drawn(browser: Browser, folder: Path) -> None:
    """Hostile names and filters are text, also on a small screen; bars end where windows do."""
    with (
        Dashboard([folder], Access(), port=0) as dashboard,
        opened(browser, dashboard, "#/0/sharing", viewport={"width": 360, "height": 700}, color_scheme="dark") as page,
    ):
        expect(page.locator(".slice")).to_have_count(3)
        assert [one.get_attribute("data-end") for one in page.locator(".reader").all()] == ["1.00", "2.00", "3.00"]
        assert page.locator(".reader").nth(1).get_attribute("data-query") == HOSTILE
        expect(page.get_by_role("table", name="Slices")).to_contain_text(EVIL)
        page.locator("#readers summary").click()
        page.get_by_role("table", name="Queries").get_by_role("button", name="nine").click()
        expect(page.locator("#query")).to_have_value("nine")
        fits = "document.documentElement.scrollWidth <= window.innerWidth"
        assert page.evaluate(fits), "wider than the screen"
        page.keyboard.press("7")
        expect(page.locator(".ring .disc")).to_have_count(3)
        expect(page.locator(".heat-map").first.locator(".cell").first).to_be_visible()
        expect(page.locator(".uneven").first).to_contain_text("!")
        assert page.evaluate(fits), "wider than the screen"
        assert page.title() == "midstream"
        assert page.locator("main img, main script").count() == 0
