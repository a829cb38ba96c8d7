"""A query that asks a user's predicate: what fails loses nothing, and a checkpoint holds its name alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import midstream as ms
from midstream.expr import user_predicates
from tests.extension import distribution

SQL = "SELECT A.k AS a, B.k AS b, C.k AS c FROM A, B, C WHERE near_to(A.k, B.k) AND near_to(B.k, C.k) WINDOW 9 SECONDS"
ONE = pa.scalar(1)


def near_to(a: pa.Array, b: pa.Array) -> pa.Array:
    """At most 1 apart."""
    return pc.less_equal(pc.abs(pc.subtract(a, b)), ONE)


def fails(a: pa.Array, b: pa.Array) -> pa.Array:
    """Raises at 7."""
    if pc.any(pc.or_(pc.equal(a, 7), pc.equal(b, 7))).as_py():
        raise ValueError("seven")
    return near_to(a, b)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicates that no other test sees."""
    monkeypatch.setattr(user_predicates, "_KNOWN", {})


def rows(start: int, *keys: int) -> pa.Table:
    times = pa.array([(start + at) * 1_000_000 for at in range(len(keys))], pa.timestamp("us"))
    return pa.table({"k": pa.array(keys, pa.int64()), "ts": times})


def engine(**options: Any) -> ms.Engine:
    made = ms.Engine(**options)
    for stream in "ABC":
        made.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    return made


STEPS = [{s: rows(2 * step, step, step + 1) for s in "ABC"} for step in range(4)]
WITH_SEVEN = {**STEPS[1], "B": rows(2, 7, 1)}


def run(made: ms.Engine, steps: list[Any]) -> list[Any]:
    return [made.push(step)["q"].to_pylist() for step in steps]


def expected(second: Any = STEPS[1]) -> list[Any]:
    """The answers by plain conditions, which are asked in the same order."""
    made = engine()
    made.add_query("q", SQL.replace("near_to(A.k, B.k) AND near_to(B.k, C.k)", "ABS(A.k-B.k)<=1 AND ABS(B.k-C.k)<=1"))
    return run(made, [STEPS[0], second, *STEPS[2:]])


def same(found: list[Any], other: list[Any]) -> bool:
    def key(row: dict[str, Any]) -> list[int]:
        return list(row.values())

    return [sorted(step, key=key) for step in found] == [sorted(step, key=key) for step in other]


@pytest.mark.parametrize("plan", ["((A B) C)", "(A (B C))", "[A: B C | B: C A | C: B A]", "eddy(A B C)"])
@pytest.mark.parametrize("sharing", ["auto", "off"])
def test_a_step_in_which_it_raises_fails_whole_and_is_done_when_it_is_mended(plan: str, sharing: str) -> None:
    ms.predicate("near_to", fails, "BIGINT", "BIGINT")
    made = engine(sharing=sharing)
    made.add_query("q", SQL, plan)
    found = run(made, STEPS[:1])
    before = made.report()
    for _ in range(2):
        with pytest.raises(ms.QueryError, match=r"raised ValueError\('seven'\) for near_to\(.*7"):
            made.push(WITH_SEVEN)
        assert made.report() == before
    ms.predicate("near_to", near_to, "BIGINT", "BIGINT")
    found += run(made, [WITH_SEVEN, *STEPS[2:]])
    assert same(found, expected(WITH_SEVEN))
    assert any(found[1:])


def test_a_query_whose_predicate_raises_can_be_dropped_and_leaves_the_others_going() -> None:
    ms.predicate("near_to", fails, "BIGINT", "BIGINT")
    made = engine()
    made.add_query("q", SQL)
    made.add_query("plain", "SELECT A.k FROM A")
    made.push(STEPS[0])
    with pytest.raises(ms.QueryError):
        made.push(WITH_SEVEN)
    made.drop_query("q")
    assert made.push(WITH_SEVEN)["plain"].num_rows == 2


@pytest.mark.parametrize("spread", ["lanes", "psp_d", "hash_hops", "atr"])
def test_a_spread_that_it_fails_in_loses_nothing_either(spread: str) -> None:
    ms.predicate("near_to", fails, "BIGINT", "BIGINT")
    made = engine()
    if spread == "lanes":
        made.add_query("q", SQL)
    else:
        made.add_query("q", SQL, spread=spread, nodes=3)
    found = run(made, STEPS[:1])
    with pytest.raises(ms.QueryError, match=r"raised ValueError\('seven'\)"):
        made.push(WITH_SEVEN)
    ms.predicate("near_to", near_to, "BIGINT", "BIGINT")
    assert same(found + run(made, [WITH_SEVEN, *STEPS[2:]]), expected(WITH_SEVEN))


def test_an_optimizer_weighs_it_like_any_condition() -> None:
    ms.predicate("near_to", near_to, "BIGINT", "BIGINT")
    made = engine()
    made.add_query("q", SQL)
    made.optimize("q", policy="adaptive", mode="auto")
    assert same(run(made, STEPS), expected())
    assert not [event for event in made.events if event.kind == "review_failed"]


PROGRAM = """
import sys
import pyarrow as pa
import midstream as ms
engine = ms.Engine.load(sys.argv[1])
print(engine.report().query("q").sql)
print("near_to(A.k, B.k)" in engine.explain("q"))
rows = pa.table({"k": [1], "ts": pa.array([9_000_000], pa.timestamp("us"))})
for attempt in (
    lambda: engine.push({stream: rows for stream in "ABC"}),
    lambda: engine.add_query("again", "SELECT k FROM A WHERE near_to(k, 1)"),
):
    try:
        attempt()
    except ms.MidstreamError as error:
        print(error)
"""


def test_a_checkpoint_holds_its_name_alone_and_is_taken_up_where_it_is_registered(tmp_path: Path) -> None:
    ms.predicate("near_to", near_to, "BIGINT", "BIGINT")
    made = engine()
    made.add_query("q", SQL)
    found = run(made, STEPS[:2])
    made.save(tmp_path / "saved")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "saved").rglob("*") if path.is_file())
    assert b"near_to(" in kept
    assert not any(code in kept for code in (b"less_equal", b"pickle", near_to.__module__.encode()))
    assert same(found + run(ms.Engine.load(tmp_path / "saved"), STEPS[2:]), expected())
    other = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path / "saved"], capture_output=True, text=True)
    assert not other.stderr
    sql, explained, pushed, added = other.stdout.splitlines()
    assert (sql, explained) == (SQL, "True")
    assert pushed.startswith(
        "the predicate 'near_to' is not registered in this process (at predicate near_to). Remedy: register"
    )
    assert added.startswith("unknown function 'NEAR_TO' (at line 1, column 23). Remedy: docs/functions.md lists")
    for line in (pushed, added):
        assert "midstream.predicate('near_to', function, types of its arguments), or install the package" in line


PLACES = """
import midstream as ms
from tests.unit.embedded.test_user_predicates import near_to
NEAR = ms.predicate("near_to", near_to, "BIGINT", "BIGINT")
"""

READING = """
import sys
import midstream as ms
engine = ms.Engine.load(sys.argv[1])
engine.report(), engine.explain("q")
print("places" in sys.modules)
from tests.unit.embedded.test_user_predicates import STEPS
print(engine.push(STEPS[2])["q"].num_rows, "places" in sys.modules)
"""


def test_an_installed_package_serves_a_checkpoint_and_is_loaded_when_it_is_asked(tmp_path: Path) -> None:
    ms.predicate("near_to", near_to, "BIGINT", "BIGINT")
    made = engine()
    made.add_query("q", SQL)
    run(made, STEPS[:2])
    made.save(tmp_path / "saved")
    site = distribution(tmp_path / "site", {"midstream.predicates": {"near_to": "places:NEAR"}}, places=PLACES)
    paths = os.pathsep.join([str(site), *filter(None, sys.path)])
    given = [sys.executable, "-c", READING, tmp_path / "saved"]
    other = subprocess.run(given, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert not other.stderr
    assert other.stdout.splitlines() == ["False", f"{made.push(STEPS[2])['q'].num_rows} True"]


def test_other_types_at_a_restart_leave_the_states_what_they_were(tmp_path: Path) -> None:
    sql = SQL.replace(" WINDOW", " AND near_to(A.k, 1) WINDOW")
    ms.predicate("near_to", near_to, "BIGINT", "BIGINT")
    sound, made = engine(sharing="off"), engine(sharing="off")
    for one in (sound, made):
        one.add_query("q", sql)
    found = run(made, STEPS[:2])
    made.save(tmp_path / "saved")
    whole = run(sound, STEPS)
    user_predicates._KNOWN.clear()
    ms.predicate("near_to", near_to, "DOUBLE", "DOUBLE")
    assert same(found + run(ms.Engine.load(tmp_path / "saved"), STEPS[2:]), whole)
