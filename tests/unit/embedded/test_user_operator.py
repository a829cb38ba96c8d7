"""Operators of users on top of queries: what they are fed, how they are kept, how they are handed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.sql.job_file import parse_job
from tests.unit.building import SECOND, engine, table

HERE = "tests.unit.embedded.user_operators"
SQL = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS"
PLANS = ("((A B) C)", "(A (B C))", "((A C) B)")
FORMS = {
    "m_join": "[A: B C | B: C A | C: B A]",
    "cacq": "eddy(A B C)",
    "stairs": "stairs(((A C) B))",
    "jisc_stairs": "stairs(((A C) B))",
}
STEPS, AT = 22, 9
Moves = dict[int, list[dict[str, Any]]]


def rows(step: int, name: str) -> pa.Table:
    """A second's rows, some of them from up to two seconds before."""
    random = np.random.default_rng([step, ord(name)])
    count = int(random.integers(0, 5))
    times = np.round(step + random.uniform(-2, 1, count), 3)
    return table(times.tolist(), k=random.integers(0, 3, count).tolist(), j=random.integers(0, 1000, count).tolist())


def run(
    moves: Moves | None = None,
    *,
    sql: str = SQL,
    operator: str = "Alive",
    saved: Path | None = None,
    lanes: int = 1,
    names: str = "ABC",
) -> tuple[Any, list[list[dict[str, Any]]]]:
    made = engine(names, lateness=2 * SECOND, lanes=lanes)
    made.add_query("q", sql, operator=f"{HERE}:{operator}", operator_options={"by": "first"})
    found = []
    for step in range(STEPS):
        for move in (moves or {}).get(step, []):
            made.migrate("q", **move)
        if saved is not None:
            made.save(saved)
            made = ms.Engine.load(saved)
        found.append(made.push({name: rows(step, name) for name in names})["q"].to_pylist())
    return made, found


def without_name(found: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    return [[{k: v for k, v in row.items() if k != "by"} for row in step] for step in found]


def speakers(found: list[list[dict[str, Any]]]) -> list[str]:
    """Who answered, in the order in which they began."""
    return list(dict.fromkeys(row["by"] for step in found for row in step))


def to(by: str, strategy: str, kind: str = "Alive", **more: Any) -> dict[str, Any]:
    return {"operator": f"{HERE}:{kind}", "operator_options": {"by": by}, "strategy": strategy, **more}


def ended(made: Any) -> list[tuple[str, int]]:
    return [(e.strategy, e.step) for e in made.events if e.kind == "migration_ended"]


ALONE, EXPECTED = run()


def test_it_is_fed_the_rows_of_the_answer_with_their_lifetimes_in_order_of_time() -> None:
    plain = engine("ABC", lateness=2 * SECOND)
    plain.add_query("q", SQL)
    for step in range(STEPS):
        answer = plain.push({name: rows(step, name) for name in "ABC"})["q"].to_pylist()
        fed = EXPECTED[step]
        assert sorted(row["row"] for row in fed) == sorted(f"{r['a']}/{r['b']}/{r['c']}" for r in answer)
        assert [row["ts"] for row in fed] == sorted(row["ts"] for row in fed)
    assert max(len(row["alive"].split()) for step in EXPECTED for row in step) > 20


def test_it_is_given_the_watermark_once_all_streams_have_one() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.j FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS", operator=f"{HERE}:Alive")
    made.push({"A": table([1.0], k=[1], j=[1])})
    (row,) = made.push({"B": table([2.0], k=[1])})["q"].to_pylist()
    assert (row["ts"], row["told"]) == (2 * SECOND, 1 * SECOND)


@pytest.mark.parametrize("strategy", sorted(set(ms.strategies()) - {"pause_drain_resume"}))
def test_no_migration_of_the_plan_below_shows(strategy: str) -> None:
    moves = {AT: [{"plan": FORMS.get(strategy, PLANS[1]), "strategy": strategy}]}
    if strategy in ("jisc_stairs",):
        moves = {3: [{"plan": "stairs(((A B) C))", "strategy": "stairs"}], **moves}
    made, found = run(moves)
    assert found == EXPECTED
    assert ended(made)[-1][0] == strategy


@pytest.mark.parametrize("plan", [None, PLANS[1]])
@pytest.mark.parametrize(
    ("strategy", "options"), [("gms", {}), ("gpt", {}), ("ghm", {"budget": 400}), ("ghm", {"budget": 10**6})]
)
def test_another_operator_takes_over_and_remembers_all(
    strategy: str, options: dict[str, Any], plan: str | None
) -> None:
    made, found = run({AT: [to("second", strategy, "Packed", plan=plan, **options)]})
    assert without_name(found) == without_name(EXPECTED)
    assert speakers(found) == ["first", "second"]
    ((_, end),) = ended(made)
    first = next(at for at, step in enumerate(found) if step and step[0]["by"] == "second")
    assert first == AT if strategy == "gms" else first > AT if plan else first > end
    if strategy == "gpt":
        assert 5 <= end - AT <= 9  # a window, and what the watermark lags behind
    if options == {"budget": 10**6}:
        assert end - AT < 9 if plan else end == AT
    assert made.migration("q") is None
    assert made.manifest.queries["q"].operator == {"class": f"{HERE}:Packed", "options": {"by": "second"}}
    tables = [name for lane in made.manifest.lane_states.values() for name in lane.states if name.endswith(".held")]
    assert len(tables) == 2


def test_a_hand_over_under_way_is_reported() -> None:
    made, _ = run({STEPS - 4: [to("second", "ghm", budget=1)]})
    report = made.migration("q")
    assert report is not None
    assert "rows wait for the new operator" in str(report)
    progress = [e for e in made.events if e.kind == "migration_progressed"]
    assert len(progress) == 4
    assert "wait for the new" in progress[0].phase
    begun = next(e for e in made.events if e.kind == "migration_begun")
    assert begun.detail["operator"] == {"class": f"{HERE}:Alive", "options": {"by": "second"}}


@pytest.mark.parametrize(
    ("moves", "speak"),
    [
        ({AT: [to("second", "gpt")], AT + 3: [to("third", "gms")]}, ["first", "third"]),
        ({AT: [to("second", "ghm", budget=3)], AT + 1: [to("third", "gpt")]}, ["first", "third"]),
        ({AT: [to("second", "gpt")], AT + 2: [to("first", "ghm")]}, ["first"]),
        ({AT: [to("second", "gms"), to("third", "gms")]}, ["first", "third"]),
        ({AT: [to("second", "gpt")], AT + 2: [{"plan": PLANS[2], "strategy": "hybmig"}]}, ["first", "second"]),
        ({0: [to("second", "gpt")]}, ["second"]),
    ],
    ids=["done at once", "given up for another", "back", "two in one step", "the plan meanwhile", "at the first step"],
)
def test_migrations_overlap(moves: Moves, speak: list[str]) -> None:
    made, found = run(moves)
    assert without_name(found) == without_name(EXPECTED)
    assert speakers(found) == speak
    assert len(ended(made)) == sum(map(len, moves.values()))


@pytest.mark.parametrize("kind", ["Alive", "Packed"])
def test_it_is_saved_and_loaded_with_the_engine(kind: str, tmp_path: Path) -> None:
    moves = {AT: [to("second", "ghm", kind, budget=3)], AT + 6: [to("third", "gpt", kind)]}
    _, found = run(moves, saved=tmp_path / "engine", operator=kind)
    assert without_name(found) == without_name(EXPECTED)


@pytest.mark.parametrize("strategy", ["gms", "gpt", "ghm"])
def test_one_may_remember_longer_than_its_rows_hold(strategy: str) -> None:
    _, alone = run(operator="Longer")
    _, found = run({6: [to("second", strategy, "Longer")]}, operator="Longer")
    assert without_name(found) == without_name(alone)
    assert speakers(found) == ["first", "second"]
    assert without_name(alone) != without_name(EXPECTED)


def test_rows_that_are_gone_can_only_be_waited_for() -> None:
    with pytest.raises(ms.StrategyError, match=r"the old operator only remembers.*use gpt"):
        run({AT: [to("second", "gms", "Longer")]})
    _, alone = run(operator="Longer")
    _, found = run({5: [to("second", "gpt", "Longer")]})
    late = [step for step in without_name(found) if step][-3:]
    assert late == [step for step in without_name(alone) if step][-3:]
    assert speakers(found) == ["first", "second"]


@pytest.mark.parametrize("strategy", ["gms", "gpt", "ghm"])
def test_it_stands_on_one_stream_too(strategy: str) -> None:
    sql = "SELECT A.j FROM A [RANGE 5 SECONDS] WHERE A.k < 2"
    _, alone = run(sql=sql, names="A")
    _, found = run({AT: [to("second", strategy)]}, sql=sql, names="A")
    assert without_name(found) == without_name(alone)
    assert speakers(found) == ["first", "second"]


def test_it_runs_in_one_lane_whatever_the_others_do() -> None:
    made = engine("ABC", lateness=2 * SECOND, lanes=3)
    made.add_query("spread", SQL)
    made.add_query("q", SQL, operator=f"{HERE}:Alive", operator_options={"by": "first"})
    for step in range(STEPS):
        if step == AT:
            made.rescale(2)
            made.migrate("q", **to("second", "gpt"))
        found = made.push({name: rows(step, name) for name in "ABC"})
        assert without_name([found["q"].to_pylist()]) == without_name([EXPECTED[step]])
    assert made.manifest.queries["q"].group == "single" != made.manifest.queries["spread"].group


def test_a_query_of_the_same_name_begins_anew() -> None:
    made, _ = run()
    made.drop_query("q")
    made.add_query("q", SQL, operator=f"{HERE}:Alive", operator_options={"by": "again"})
    made.push({name: rows(STEPS, name) for name in "ABC"})
    assert made.push({})["q"].num_rows == 0
    kept = [name for lane in made.manifest.lane_states.values() for name in lane.states if name.endswith(".held")]
    assert kept
    assert all(name.startswith(f"q.{STEPS}.") for name in kept)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", r"failed in feed: ValueError\('no such luck'\)"),
        ("list", "returned a list"),
        ("columns", "returned by string, ts int64, row string, alive string instead of .*told"),
        ("snapshot", "failed in snapshot: TypeError"),
    ],
)
def test_what_goes_wrong_in_a_step_leaves_everything_as_it_was(how: str, message: str) -> None:
    made = engine("ABC", lateness=2 * SECOND)
    options = {"how": how, "after": 10 * SECOND}
    made.add_query("q", SQL, operator=f"{HERE}:Failing", operator_options=options)
    for step in range(STEPS):
        before = made.manifest
        try:
            made.push({name: rows(step, name) for name in "ABC"})
        except ms.QueryError as error:
            assert step >= 10
            assert made.manifest is before
            with pytest.raises(ms.QueryError, match=message):
                raise
            assert any(one in str(error) for one in ("repeat the step", "from feed", "let `feed` return"))
            made.drop_query("q")
            made.push({name: rows(step, name) for name in "ABC"})
            return
    pytest.fail("nothing went wrong")


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("nowhere.at:All", {}, "cannot be imported: ModuleNotFoundError"),
        (f"{HERE}:Nobody", {}, "cannot be imported: AttributeError"),
        (HERE, {}, "names no class"),
        (f"{HERE}:CONSTANT", {}, "is not a class"),
        (f"{HERE}:Alive", {"colour": 1}, "cannot be made: TypeError"),
        (f"{HERE}:Mute", {}, "has no method snapshot"),
    ],
)
def test_what_is_no_operator_is_refused_at_once(path: str, options: dict[str, Any], message: str) -> None:
    made = engine("ABC")
    with pytest.raises(ms.QueryError, match=message) as error:
        made.add_query("q", SQL, operator=path, operator_options=options)
    assert path in error.value.place
    assert error.value.remedy
    with pytest.raises(ms.QueryError):
        ALONE.migrate("q", operator=path, operator_options=options, strategy="gms")
    made.add_query("q", SQL)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT A.k, COUNT(*) AS n FROM A WINDOW 5 SECONDS GROUP BY A.k EVERY 1 SECOND",
        "SELECT A.k FROM A EXCEPT ON (k) B WINDOW 5 SECONDS",
        "SELECT A.k AS _ts FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS",
    ],
)
def test_what_an_operator_cannot_stand_on(sql: str) -> None:
    made = engine("AB")
    made.add_query("plain", sql)
    with pytest.raises(ms.QueryError, match="operator"):
        made.add_query("q", sql, operator=f"{HERE}:Alive")


@pytest.mark.parametrize("strategy", sorted(set(ms.strategies()) - {"gms", "gpt", "ghm"}))
def test_a_state_that_is_opaque_cannot_be_moved(strategy: str) -> None:
    plan = FORMS.get(strategy, PLANS[1])
    with pytest.raises(ms.StrategyError) as error:
        ALONE.migrate("q", plan, strategy, operator=f"{HERE}:Packed")
    if strategy not in ("pause_drain_resume", "jisc_stairs"):
        assert "midstream cannot read the operator's state" in error.value.message
        assert "use a strategy that only feeds the operator: ghm, gms, gpt" in error.value.remedy


def test_what_else_is_refused() -> None:
    with pytest.raises(ms.StrategyError, match=r"already runs the plan"):
        ALONE.migrate("q", operator=f"{HERE}:Alive", operator_options={"by": "first"}, strategy="gms")
    with pytest.raises(ms.StrategyError, match="name a strategy: ghm, gms, gpt"):
        ALONE.migrate("q", operator=f"{HERE}:Packed", strategy="auto")
    with pytest.raises(ms.StrategyError, match="the same columns as the old operator"):
        ALONE.migrate("q", operator="tests.unit.embedded.user_operators:Other", strategy="gms")
    with pytest.raises(ms.QueryError, match="name the operator too"):
        ALONE.migrate("q", operator_options={"by": "second"}, strategy="gms")
    with pytest.raises(ms.StrategyError, match="hold_new"):
        ALONE.migrate("q", PLANS[1], "parallel_track", hold_new=True)
    made = engine("ABC")
    made.add_query("plain", SQL)
    with pytest.raises(ms.StrategyError, match="has no operator"):
        made.migrate("plain", operator=f"{HERE}:Alive", strategy="gms")
    made.add_query("q", SQL.replace("FROM A,", "FROM A [ROWS 9],"), operator=f"{HERE}:Alive")
    with pytest.raises(ms.StrategyError, match="midstream cannot know when"):
        made.migrate("q", operator=f"{HERE}:Packed", strategy="gpt")


def test_it_is_explained() -> None:
    made, _ = run({STEPS - 2: [to("second", "gpt")]})
    text = made.explain("q", analyze=True)
    assert f'on top {HERE}:Alive(by="second")' in text
    assert "a user operator is on top" in text
    assert "migration by gpt" in text
    assert "the new operator gets the rows of the old one" in text
    assert made.explain("q", format="json")["on_top"] == f'{HERE}:Alive(by="second")'


def test_a_job_file_names_it() -> None:
    text = """checkpoint = "c"
[streams.A]
format = "json"
timestamp = "ts"
[queries.q]
sql = "SELECT A.k FROM A"
sink = { format = "json", path = "out" }
operator = "shop:Median"
operator_options = { column = "k" }
"""
    query = parse_job(text).queries["q"]
    assert (query.operator, query.operator_options) == ("shop:Median", {"column": "k"})
    with pytest.raises(ms.LanguageError, match="operator_options is 5"):
        parse_job(text.replace('{ column = "k" }', "5"))
