"""The views of rows that did not enter and of what steps take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.checkpoint.time_log import text_of
from midstream.dashboard.api import Api
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from midstream.model.step_time import StepTime
from tests.dashboard.browser import HOSTILE, opened
from tests.dashboard.jobs import SECOND

SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS"


def stream(keys: list[Any], times: list[int], texts: list[str] | None = None) -> pa.Table:
    columns = {"k": pa.array(keys), "note": pa.array(texts or [""] * len(keys), pa.string())}
    return pa.table({**columns, "ts": pa.array([time * SECOND for time in times], pa.timestamp("us"))})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ms.Engine]:
    """Six steps: A has two late rows in step 3, B a dead letter in each of the steps 1 and 4."""
    with ms.Engine(checkpoint=tmp_path / "ckpt", durable=False) as found:
        for name in "AB":
            found.create_stream(name, "k BIGINT, note VARCHAR, ts TIMESTAMP", timestamp="ts", lateness="1 second")
        found.add_query("q", SQL)
        found.push({"A": stream([1], [1]), "B": stream([1], [1])})
        found.push({"A": stream([2], [9]), "B": stream(["2", "two"], [9, 9], ["", HOSTILE])})
        found.push({"A": stream([3], [20]), "B": stream([3], [20])})
        found.push({"A": stream([4, 5, 6], [21, 12, 17], ["", HOSTILE, ""]), "B": stream([4], [21])})
        found.push({"A": stream([7], [22]), "B": stream(["7", "seven"], [22, 22])})
        found.push({"A": stream([8], [23]), "B": stream([8], [23])})
        yield found


def view(folder: Path, name: str, **options: str) -> dict[str, Any]:
    return Api([Checkpoint.open(folder)]).view(0, name, options)


def test_samples_are_the_rows_that_did_not_enter(engine: ms.Engine, tmp_path: Path) -> None:
    found = view(tmp_path / "ckpt", "rows")
    assert [(one["name"], one["late"], one["rejected"]) for one in found["streams"]] == [("A", 2, 0), ("B", 0, 2)]
    assert found["lines"]["late"] == [0, 0, 0, 2, 0, 0]
    assert found["lines"]["rejected"] == [0, 1, 0, 0, 1, 0]
    dead, late = found["samples"]
    assert (dead["stream"], dead["kind"], dead["steps"]) == ("B", "dead_letters", [4, 1])
    kept = engine.dead_letters["B"].to_pylist()
    assert dead["reasons"] == [row["_reason"] for row in reversed(kept)]
    assert [row[dead["columns"].index("note")] for row in dead["rows"]] == ["", HOSTILE]
    assert [row[dead["columns"].index("k")] for row in dead["rows"]] == ["seven", "two"]
    assert (late["stream"], late["kind"], late["steps"]) == ("A", "late", [3, 3])
    assert late["late_by"] == [7 * SECOND, 2 * SECOND]  # The watermark was at 20 - 1 seconds.


def test_dead_letters_of_a_query_are_shown_with_their_reasons(engine: ms.Engine, tmp_path: Path) -> None:
    engine.add_query("numbers", "SELECT CAST(A.note AS INT) AS n FROM A")
    engine.push({"A": stream([9, 10], [24, 25], ["7", HOSTILE])})
    found = view(tmp_path / "ckpt", "rows")
    one = found["samples"][0]
    assert (one["stream"], one["kind"], one["steps"]) == ("numbers", "rejected", [6])
    assert one["rows"][0][one["columns"].index("A.note")] == HOSTILE
    assert one["reasons"] == ["cast(A.note) cannot be evaluated"]
    assert found["lines"]["rejected"][-1] == 1


def test_of_a_step_of_the_past_nothing_later_is_shown(engine: ms.Engine, tmp_path: Path) -> None:
    found = view(tmp_path / "ckpt", "rows", step="3")
    assert [one["steps"] for one in found["samples"]] == [[3, 3], [1]]
    assert found["lines"]["rejected"] == [0, 1, 0, 0]


def test_a_saved_engine_shows_what_it_kept(tmp_path: Path) -> None:
    found = ms.Engine()
    for name in "AB":
        found.create_stream(name, "k BIGINT, note VARCHAR, ts TIMESTAMP", timestamp="ts")
    found.add_query("q", SQL)
    found.push({"A": stream(["1", "one"], [1, 1])})
    found.save(tmp_path / "saved")
    (sample,) = view(tmp_path / "saved", "rows")["samples"]
    assert (sample["steps"], len(sample["rows"])) == ([None], 1)


def test_times_are_those_that_the_checkpoint_has(engine: ms.Engine, tmp_path: Path) -> None:
    engine.close()  # It writes its own now, and not again.
    asked = Api([Checkpoint.open(tmp_path / "ckpt")])
    before = asked.version(0, {}, "steps")
    folders = Checkpoint.open(tmp_path / "ckpt").folders
    ended = [100.0, 101.0, 104.0]
    given = [
        StepTime(step, end, 0.5, {"fold": 0.3, "commit": 0.2}, 2.0, {"A": 30}, results=6, backlog={"A": step})
        for step, end in zip((3, 4, 5), ended, strict=True)
    ]
    folders.times.write(folders.manifests.kept()[-1].time_line.epochs[-1].number, [text_of(one) for one in given])
    assert asked.version(0, {}, "steps") != before
    found = asked.view(0, "steps", {})
    assert [one["step"] for one in found["times"]] == [3, 4, 5]
    assert [one["rows_per_second"] for one in found["times"]] == [60.0, 60.0, 60.0]
    assert [one["results_per_second"] for one in found["times"]] == [12.0, 12.0, 12.0]
    assert (found["phases"], found["summary"]["interval"], found["times"][-1]["backlog"]) == (
        ["fold", "commit"],
        2.0,
        5,
    )
    assert [one["step"] for one in asked.view(0, "steps", {"step": "4"})["times"]] == [3, 4]
    assert found["work"]["rows_in"] == [2, 2, 2, 2, 2, 2]


def test_both_are_drawn(browser: Browser, engine: ms.Engine, tmp_path: Path) -> None:
    """Hostile values are text, on a small screen; times appear once they are written, without another step."""
    with (
        Dashboard([tmp_path / "ckpt"], Access(), port=0) as dashboard,
        opened(browser, dashboard, "#/0/rows", viewport={"width": 360, "height": 700}, color_scheme="dark") as page,
    ):
        dead = page.get_by_role("table", name="The newest of 2 rows looked at").first
        expect(dead).to_contain_text(HOSTILE)
        expect(dead).to_contain_text("seven")
        expect(page.get_by_text("7 s behind the watermark")).to_be_visible()
        assert page.title() == "midstream"
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "wider than the screen"
        page.evaluate("location.hash = '#/0/steps'")
        expect(page.get_by_text("The times of these steps are not known")).to_have_count(0)
        expect(page.locator(".step-bar")).to_have_count(6)
        expect(page.locator(".step-bar").last.locator("title")).to_contain_text("Step 5, ")
        page.locator("#slowest summary").click()
        expect(page.get_by_role("table", name="Steps, the slowest first").locator("tbody tr")).to_have_count(6)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "wider than the screen"


def test_a_late_row_with_what_python_has_not_is_shown(tmp_path: Path) -> None:
    with ms.Engine(checkpoint=tmp_path / "ckpt", durable=False) as engine:
        engine.create_stream("A", "d DATE, ts TIMESTAMP", timestamp="ts")
        engine.add_query("q", "SELECT d FROM A")
        for second, days in ((2, 0), (1, 2**31 - 1)):
            times = pa.array([second * SECOND], pa.timestamp("us"))
            engine.push({"A": pa.table({"d": pa.array([days], pa.int32()).cast(pa.date32()), "ts": times})})
    (late,) = view(tmp_path / "ckpt", "rows")["samples"]
    assert late["rows"][0][late["columns"].index("d")] == "<value out of range: 2147483647>"


def test_kept_rows_and_results_are_sampled(engine: ms.Engine, tmp_path: Path) -> None:
    engine.add_query("filed", SQL, sink=ms.sinks.files(str(tmp_path / "filed")))
    engine.push({"A": stream([9], [24], [HOSTILE]), "B": stream([9], [24])})
    found = view(tmp_path / "ckpt", "rows", query="filed")
    kept = {one["name"]: one for one in found["kept"]}
    assert kept["A"]["rows"][-1][kept["A"]["columns"].index("k")] == "9"
    assert (found["results"]["step"], found["results"]["rows"]) == (6, [["9"]])
    assert view(tmp_path / "ckpt", "rows", query="q")["results"]["rows"] == [["9"]]
    engine.add_query("printed", SQL, sink=lambda results, step, query: None)
    engine.push({"A": stream([9], [25]), "B": stream([9], [25])})
    assert view(tmp_path / "ckpt", "rows", query="printed")["results"]["elsewhere"]
