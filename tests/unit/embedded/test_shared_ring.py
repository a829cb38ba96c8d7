"""Queries that share a ring, through the engine: what is kept and compared is the least, who shares, who leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from tests.unit.embedded.test_spread import WITHOUT_COPIES, engine, rows

Row = dict[str, Any]
"""Its values, its time in seconds and the step it arrived in."""

ORDERS = {"A": "BC", "B": "AC", "C": "BA"}
LATENESS = 2


@dataclass
class Wanted:
    """A query as the theorems see it: a window for each stream, in seconds, its filter, and since when it runs."""

    windows: dict[str, int]
    filter: str = ""
    passes: Callable[[str, Row], bool] = lambda label, row: True
    since: int = 0

    @property
    def sql(self) -> str:
        """Its text: one join of three streams for all."""
        sources = ", ".join(f"{name} [RANGE {size} SECONDS]" for name, size in self.windows.items())
        return f"SELECT A.x AS a, C.y AS c FROM {sources} WHERE A.x <> B.x AND B.y <> C.y {self.filter}"

    def needs(self, together: dict[str, Row]) -> bool:
        """Whether these rows can be together in a result of it."""
        newest = max(row["t"] for row in together.values())
        return all(
            row["step"] >= self.since and self.passes(label, row) and newest - row["t"] <= self.windows[label]
            for label, row in together.items()
        )


QUERIES = {
    "all": Wanted({"A": 20, "B": 6, "C": 9}),
    "low": Wanted(
        {"A": 5, "B": 20, "C": 9}, "AND A.y < 3 AND C.y < 4",
        lambda label, row: {"A": row["y"] < 3, "B": True, "C": row["y"] < 4}[label],
    ),
    "two": Wanted(
        {"A": 8, "B": 8, "C": 30}, "AND A.y > 1 AND C.x <> 2",
        lambda label, row: {"A": row["y"] > 1, "B": True, "C": row["x"] != 2}[label], since=3,
    ),
}  # fmt: skip


@dataclass
class Least:
    """What must be kept and compared, found row by row and pair by pair."""

    came: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in "ABC"})
    compared: int = 0

    def step(self, number: int, queries: dict[str, Wanted]) -> int:
        """Take the rows of a step; how many rows are kept after it."""
        watermarks = [max((row["t"] for row in self.came[name]), default=-100) - LATENESS for name in "ABC"]
        for name, table in rows(number).items():
            for row in table.to_pylist():
                self.came[name].append({**row, "t": row["ts"].second + 60 * row["ts"].minute, "step": number})
        for start in "ABC":
            self.compared += sum(1 for _ in self._pairs(start, number, queries))
        return sum(self._kept(name, row, number, min(watermarks), queries) for name in "ABC" for row in self.came[name])

    def _kept(self, name: str, row: Row, number: int, bound: int, queries: dict[str, Wanted]) -> bool:
        """Whether some query needs a row that may still meet one to come (Theorems 10 and 12)."""
        return any(
            one.needs({name: row}) and (row["step"] == number or row["t"] + one.windows[name] >= bound)
            for one in queries.values()
        )

    def _pairs(self, start: str, number: int, queries: dict[str, Wanted]) -> Iterator[dict[str, Row]]:
        """Partial results and rows that some query needs together (Lemma 9, Theorem 13)."""
        partials = [{start: row} for row in self.came[start] if row["step"] == number]
        partials = [one for one in partials if any(query.needs(one) for query in queries.values())]
        for label in ORDERS[start]:
            found = []
            for partial, row in product(partials, self.came[label]):
                if row["step"] == number and label > start:
                    continue
                together = {**partial, label: row}
                if any(query.needs(together) for query in queries.values()):
                    yield together
                    if _holds(together):
                        found.append(together)
            partials = found


def _holds(together: dict[str, Row]) -> bool:
    a, b, c = (together.get(name) for name in "ABC")
    return (not (a and b) or a["x"] != b["x"]) and (not (b and c) or b["y"] != c["y"])


def sharing(made: ms.Engine) -> list[list[str]]:
    """The queries that are spread, by the ring they are in."""
    groups: dict[str, list[str]] = {}
    for name, entry in sorted(made.manifest.queries.items()):
        if entry.nodes is not None:
            groups.setdefault(entry.group, []).append(name)
    return sorted(groups.values())


@pytest.mark.parametrize("way", ("one_lane", *WITHOUT_COPIES))
def test_the_least_is_kept_and_compared(way: str) -> None:
    """While two queries share a ring, a third one comes, and the first one goes."""
    made, least, running = engine(), Least(), dict[str, Wanted]()
    plan = "[A: B C | B: A C | C: B A]"
    for step in range(9):
        for name, query in QUERIES.items():
            if query.since == step:
                made.add_query(name, query.sql, plan=plan, spread=way, nodes=4)
                running[name] = query
        if step == 6:
            made.drop_query("all")
            del running["all"]
        made.push(rows(step))
        kept = least.step(step, running)
        assert sharing(made) == [sorted(running)]
        assert made.metrics()["state_rows"] == kept
        assert made.manifest.totals.comparisons == least.compared
    assert kept and least.compared


def test_answers_are_those_of_each_alone() -> None:
    shared = engine()
    alone = {name: engine() for name in ("all", "low")}
    for name, other in alone.items():
        for made in (shared, other):
            made.add_query(name, QUERIES[name].sql, spread="psp", nodes=4)
    found = 0
    for step in range(6):
        answers = shared.push(rows(step))
        for name, other in alone.items():
            expected = other.push(rows(step))[name]
            assert sorted(map(str, answers[name].to_pylist())) == sorted(map(str, expected.to_pylist()))
            found += expected.num_rows
    assert found
    assert shared.metrics()["state_rows"] < sum(other.metrics()["state_rows"] for other in alone.values())
    assert shared.manifest.totals.comparisons < sum(other.manifest.totals.comparisons for other in alone.values())


def test_who_shares() -> None:
    made = engine()
    sql, other = QUERIES["all"].sql, QUERIES["low"].sql
    made.add_query("a", sql, spread="psp_d", nodes=4)
    made.add_query("b", other, spread="psp_d")  # 4 nodes where none are named.
    made.add_query("renamed", sql.replace("A [", "A P [").replace("A.", "P."), spread="psp_d")
    made.add_query("more nodes", sql, spread="psp_d", nodes=5)
    made.add_query("another way", other, spread="psp", nodes=4)
    made.add_query("other orders", other, plan="[A: C B | B: A C | C: A B]", spread="psp_d", nodes=4)
    made.add_query("other join", sql.replace("A.x <> B.x", "A.y <> B.x"), spread="psp_d", nodes=4)
    for name in ("with options", "with options too"):
        made.add_query(name, sql, spread="ctr", nodes=4)
    made.push(rows(0))
    alone = ["more nodes", "another way", "other orders", "other join", "with options", "with options too"]
    assert sharing(made) == sorted([["a", "b", "renamed"], *([name] for name in alone)])
    assert made.report().query("a").nodes_with == ("b", "renamed")
    assert "shared with 'b', 'renamed'" in made.explain("a")
    assert made.explain("b", format="json")["nodes"]["queries"] == ["a", "b", "renamed"]


def test_without_sharing_each_has_its_own() -> None:
    made = ms.Engine(sharing="off")
    for name in "ABC":
        made.create_stream(name, "x BIGINT, y BIGINT, ts TIMESTAMP", timestamp="ts")
    for name in ("all", "low"):
        made.add_query(name, QUERIES[name].sql, spread="psp_d", nodes=4)
    assert made.push(rows(0)).keys() == {"all", "low"}
    assert sharing(made) == [["all"], ["low"]]


def test_the_orders_of_one_are_those_of_all_and_one_that_is_spread_otherwise_leaves() -> None:
    made = engine()
    for name in ("all", "low"):
        made.add_query(name, QUERIES[name].sql, spread="psp_d", nodes=4)
    made.push(rows(0))
    plan = "[A: C B | B: A C | C: A B]"
    made.migrate("low", plan)
    made.push(rows(1))
    assert {entry.plan for entry in made.manifest.queries.values()} == {plan}
    assert made.migration("low") is None
    made.spread("all", "psp", nodes=2)
    made.push(rows(2))
    assert sharing(made) == [["all"], ["low"]]


def cut_by_load(scheme: str | None, path: Path | None) -> tuple[list[dict[str, list[str]]], int]:
    """The answers of a narrow query and of a wide one that few rows pass, and in how many ways their ring was cut."""

    def begun() -> ms.Engine:
        made = ms.Engine(seed=3, checkpoint=path)
        for name in "AB" if not made.manifest.streams else "":
            made.create_stream(name, "x BIGINT, y BIGINT, ts TIMESTAMP", timestamp="ts", lateness="1 second")
        for name, window, selected in (("q", 4, ""), ("wide", 16, " AND A.y < 5 AND B.y < 5")):
            if name not in made.manifest.queries:
                sql = f"SELECT A.x AS a, B.x AS b, _ts FROM A, B WHERE (A.x + B.y) % 41 < 1{selected}"
                made.add_query(name, f"{sql} WINDOW {window} SECONDS", spread=scheme, nodes=scheme and 4)
        return made

    made, found, cuts, random = begun(), [], set(), np.random.default_rng(1)
    for step in range(84):
        if path is not None and step == 70:
            made.close()
            made = begun()
        begin, end = (step - 1) * 500_000, (step + 1) * 500_000
        batch = {
            name: pa.table({
                "x": random.integers(0, 50, 18),
                "y": random.integers(0, 50, 18),
                "ts": pa.array(np.maximum(random.integers(begin, end, 18), 0), pa.timestamp("us")),
            })
            for name in "AB"
        }  # fmt: skip
        found.append({query: sorted(map(str, table.to_pylist())) for query, table in made.push(batch).items()})
        spread = made.manifest.queries["q"].nodes
        cuts.add(spread and (spread.cuts, spread.pieces))
    return found, len(cuts)


@pytest.mark.verify
def test_a_ring_that_is_cut_by_load_answers_as_lanes_do(tmp_path: Path) -> None:
    """§21.3: slices change while rows come late, and the engine goes on from its checkpoint with them."""
    expected, _ = cut_by_load(None, None)
    found, cuts = cut_by_load("psp", tmp_path / "checkpoint")
    assert cuts > 1 and found == expected
    assert sum(len(step["wide"]) for step in found) > 20
