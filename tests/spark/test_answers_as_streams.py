"""Queries that read other queries' answers, on Spark: fixed cases against the oracle, as plans and lanes change."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.commands.add_query import AddQuery
from tests.oracle.answer import Answer
from tests.oracle.arrival import Lifetime, arrive
from tests.oracle.chain_spec import ChainJoin, ChainSpec
from tests.oracle.outer_spec import OuterSpec
from tests.oracle.spec import SECOND, TIME, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Action, Case, Migrate, Rescale, Restart, Spread
from tests.property.rows import Shape, cut, draw_rows
from tests.property.test_answers_as_streams import TIMED, Expected, equal
from tests.spark.drive import Hooks, Place, check_case, finish, job, read_all

A, B, C = (SourceSpec(name, name, 3 * SECOND) for name in "ABC")
PAIRS = (Item("A.k", "k"), Item("B.n", "n"), Item("A.u + B.u", "u"), TIMED)


def of(read: str, other: str, size: int = 2) -> QuerySpec:
    """A join of the answers of a query with another's, or with a stream."""
    items = (Item("Q.k", "k"), Item("R.n", "n"), Item("Q.u + R.u", "u"), TIMED)
    sources = (SourceSpec("Q", read, size * SECOND), SourceSpec("R", other, SECOND))
    return QuerySpec(sources, items, (equal("Q", "R"), Condition("Q.u <> R.u", ("Q", "R"))))


def counted(read: str) -> QuerySpec:
    """An aggregate of the answers of a query."""
    items = (Item("Q.k", "k"), Item("COUNT(*)", "n"), Item("MAX(Q.u)", "u"), TIMED)
    return QuerySpec((SourceSpec("Q", read, 2 * SECOND),), items, (), ("Q.k",), every=2 * SECOND)


TIED = (equal("A", "B"), Condition("B.n = C.n", ("B", "C")))
CASES = {
    "three levels": (QuerySpec((A, B, C), PAIRS, TIED), of("q0", "A"), counted("q1")),
    "rows that pass no filter below": (
        QuerySpec((A, B), PAIRS, (equal("A", "B"), Condition("A.n > 0", ("A",)), Condition("B.n > 0", ("B",)))),
        of("q0", "A"),
        counted("q1"),
    ),
    "a join of aggregates": (counted("A"), counted("q0"), of("q0", "q1")),
    "outer joins": (
        OuterSpec(
            (SourceSpec("A", "A"), SourceSpec("B", "B")), PAIRS, (equal("A", "B"),), written="LEFT JOIN",
            windows=(SECOND, SECOND),
        ),
        of("q0", "q0"),
        of("q1", "C"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_answers_that_others_read(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("midstream.spark.driver.LARGE", 0)
    declared, sequence = draw_rows(Shape(3, (40, 40, 30), 12, keys=3, disorder=2, slack=1))
    steps = cut(declared, sequence, (40, 60, 80, 95))
    queries = tuple(Lifetime(f"q{n}", spec) for n, spec in enumerate(CASES[name]))
    oracle, expected = Expected(declared, arrive(declared, steps, queries[:1])), dict[str, Answer]()
    for query in queries:
        expected[query.name] = oracle.of(query)
        assert expected[query.name].table.num_rows
    actions: list[Action] = [Rescale(2, 3), Restart(3)]
    if name == "rows that pass no filter below":
        actions += [Spread(1, "q0", "psp", 2), Spread(1, "q1", "psp_d", 3), Spread(3, "q1", "hash_hops", 2)]
    if name == "three levels":
        actions += [Migrate(1, "q0", "(A (B C))", "parallel_track"), Migrate(3, "q1", "(R Q)", "moving_state")]
    check_case(spark, hooks, tmp_path, Case(declared, steps, queries), {}, actions, expected=expected, lanes=2)


SOURCES = tuple(SourceSpec(name, name, size * SECOND) for name, size in zip("ABC", (2, 1, 3), strict=True))
COUNTED = (Item("A.k", "k"), Item("COUNT(*)", "n"), Item("MAX(C.u)", "c"), Item(TIME))
CHAINS = {
    "three streams": ChainSpec(
        SOURCES,
        (Item("A.k", "k"), Item("A.u", "a"), Item("B.u", "b"), Item("C.u", "c"), Item(TIME)),
        joins=(ChainJoin("LEFT JOIN", ("A.k = B.k", "A.n < B.n")), ChainJoin("LEFT JOIN", ("A.k = C.k", "C.n > 0"))),
    ),
    "below an aggregate": ChainSpec(
        SOURCES,
        COUNTED,
        group_by=("A.k",),
        joins=(ChainJoin("LEFT JOIN", ("A.k = B.k",)), ChainJoin("LEFT JOIN", ("B.n = C.n",))),
        after=("B.u IS NULL OR C.u IS NOT NULL",),
        tumble=3 * SECOND,
        of="A.ts",
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_joins_of_which_others_read_the_results(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("midstream.spark.driver.LARGE", 0)
    declared, sequence = draw_rows(Shape(3, (40, 40, 30), 12, keys=3, disorder=2, slack=1))
    case = Case(declared, cut(declared, sequence, (40, 60, 80, 95)), (Lifetime("q", CHAINS[name]),))
    assert case.expected()["q"].table.num_rows
    check_case(spark, hooks, tmp_path, case, {}, [Rescale(2, 3), Restart(3)], lanes=2)


def test_what_reads_answers_is_told_of_what_it_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    declared, _ = draw_rows(Shape(5, (6, 1), 20, keys=3))
    made = job(
        spark, Place(tmp_path), declared, {"pairs": "SELECT A.k, B.n FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS"}
    )
    reading = "SELECT x.k FROM pairs [RANGE 1 MINUTE] AS x, A [RANGE 1 MINUTE] WHERE x.k < A.k"
    for plan, spread, message in (
        (None, "lanes", "no single key joins all sources"), (None, "psp_x", "unknown spread 'psp_x'"),
        ("(x B)", None, "unknown source 'B'"), ("(x B)", "psp", "unknown source 'B'"),
    ):  # fmt: skip
        with pytest.raises(ms.PlanError, match=message):
            made.query("q", reading, plan, spread=spread, nodes=2 if spread else None)
    made.query("q", reading, spread="psp", nodes=2)
    with pytest.raises(ms.LanguageError, match="unknown stream 'later'"):
        made.query("r", "SELECT k FROM later")


def test_a_subquery_comes_to_a_job_that_runs(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """It reads a column that no row has carried so far; what it answers is what the query within answers by itself."""
    declared, sequence = draw_rows(Shape(5, (60, 10), 20, keys=3))
    steps, place = cut(declared, sequence, (20, 45, 70)), Place(tmp_path)
    for step, tables in enumerate(steps):
        for spec in declared:
            place.feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))
    inner = "SELECT A.s AS s, COUNT(*) AS n, window_end AS t FROM A GROUP BY A.s, TUMBLE(A.ts, INTERVAL '2' SECONDS)"
    texts = {"inner": inner, "outer": f"SELECT s, n, t FROM ({inner}) AS x WHERE n > 0"}
    for name, sql in texts.items():
        hooks.give(2, AddQuery(name, sql, None, {"path": str(place.answers(name)), "format": "parquet"}))
    finish(job(spark, place, declared, {"first": "SELECT A.u FROM A"}, lanes=2))
    found = {name: sorted(map(str, read_all(place.answers(name)).to_pylist())) for name in texts}
    assert found["inner"] == found["outer"] != []
