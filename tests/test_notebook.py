"""The notebook of the examples, run cell by cell in a kernel of its own; and what draws itself in one."""

from __future__ import annotations

import os
import xml.dom.minidom
from pathlib import Path
from typing import Any

import nbformat
import pyarrow as pa
import pytest
from nbclient import NotebookClient

import midstream as ms
from midstream.explain.plan_svg import plan_svg

ROOT = Path(__file__).resolve().parent.parent
HOSTILE = '<img src=x onerror=alert(1)>"&'


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(autouse=True, scope="module")
def sources() -> Any:
    """A kernel finds what this process does."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    yield
    del os.environ["PYTHONPATH"]
    if before is not None:
        os.environ["PYTHONPATH"] = before


def html(cell: Any) -> str:
    return "".join(output["data"].get("text/html", "") for output in cell.outputs if "data" in output)


def test_every_cell_draws_what_it_gives(cells: list[Any]) -> None:
    _, watch, pushes, explained, migration, engine, metrics, plans, _ = cells
    assert "<svg" in html(watch) and "new plan" in html(watch), "it was drawn anew while steps were done"
    assert "<table" in html(pushes)
    assert html(explained).count("<svg") == 1 and "old plan" in html(explained) and "<pre>" in html(explained)
    assert "parallel_track" in html(migration)
    for cell in (engine, metrics, plans):
        assert "refunded" in html(cell) and "<table" in html(cell)


def row(second: int) -> pa.Table:
    return pa.table({"k": [1], "j": ["x"], "ts": pa.array([second * 1_000_000], pa.timestamp("us"))})


def moving() -> ms.Engine:
    made = ms.Engine()
    for stream in "ABC":
        made.create_stream(stream, "k BIGINT, j VARCHAR, ts TIMESTAMP", timestamp="ts")
    condition = f"A.j <> '{HOSTILE}'"
    made.add_query(HOSTILE, f"SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k AND {condition} WINDOW 9 SECONDS")
    for at in range(4):
        made.push(dict.fromkeys("ABC", row(at)))
    made.migrate(HOSTILE, "(A (B C))", "parallel_track")
    made.push(dict.fromkeys("ABC", row(5)))
    return made


def test_nothing_from_data_is_unescaped() -> None:
    made = moving()
    shown = made.explain(HOSTILE, analyze=True)
    values = (made, made.report(), made.report().query(HOSTILE), made.metrics(), made.migration(HOSTILE), shown)
    for value in (*values, made.plans(HOSTILE)):
        text = value._repr_html_()
        assert "<img" not in text and "&lt;img" in text
    xml.dom.minidom.parseString(shown.svg)
    assert shown == str(shown) and "window_join" in shown


def test_a_migration_draws_both_plans() -> None:
    made = moving()
    drawn = made.explain(HOSTILE).svg
    assert "old plan: " in drawn and "new plan: " in drawn and "stroke-dasharray" in drawn


def test_texts_say_what_a_value_is() -> None:
    made = moving()
    assert repr(made) == "<Engine after step 4: 1 query over 3 streams, 44 rows in state>"
    assert repr(made.report()).startswith("<Report of step 4: 1 query over 3 streams, ")
    assert repr(made.report().query(HOSTILE)).endswith("moving to (A (B C)) by parallel_track>")
    assert repr(made.plans(HOSTILE)).startswith(f"<Plans of query {HOSTILE}, which runs by ")


def test_an_engine_without_anything_draws_too() -> None:
    assert repr(ms.Engine()) == "<Engine after step -1: 0 queries over 0 streams, 0 rows in state>"
    assert "<div>" in ms.Engine()._repr_html_()
    assert plan_svg({"nodes": [], "edges": []}, HOSTILE).count("<img") == 0


def test_watch_says_where_it_draws() -> None:
    with pytest.raises(ms.InputError, match=r"there is no notebook.*midstream status CHECKPOINT --watch"):
        moving().watch(HOSTILE)


def test_dir_shows_what_is_of_use() -> None:
    assert [name for name in dir(ms) if not name.startswith("__")] == sorted(ms.__all__)
