"""Plans without a fixed tree against the default plan: each combination once, whatever the predicates."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random
from typing import Any

import pytest

from midstream.operators.eddy import cacq_eddy
from tests.unit.building import engine, table

SELECT = "SELECT A.v AS a, B.v AS b, C.v AS c, D.v AS d FROM A, B, C, D WHERE "
WHERE = {
    "one key": "A.k = B.k AND B.k = C.k AND C.k = D.k",
    "a key of two columns": "A.k = B.k AND A.j = B.j AND C.k = D.k AND C.j = D.j AND A.j = C.j",
    "a ring of keys": "A.k = B.k AND B.j = C.j AND C.k = D.k AND A.j = D.j",
    "members of one source": "A.k = B.k AND B.k = C.j AND A.j = D.k AND D.k = B.k",
    "own members beyond the index": "A.s = D.s AND D.k = B.j AND D.j = B.j AND ABS(A.k - B.k) <= 1 AND A.k = C.k",
    "their members beyond the index": "A.s = D.s AND D.k = B.k AND D.k = B.j AND ABS(A.k - B.k) <= 1 AND A.k = C.k",
    "keys that only two give": "A.k = D.k AND B.j = D.j AND C.s = D.s AND A.j = B.k",
    "bands": "A.k - B.k BETWEEN 0 AND 1 AND ABS(B.j - C.j) <= 1 AND C.v < D.v AND C.k = D.k AND A.k + D.j > 2",
    "bands of several sources": "ABS(A.k - D.k) <= 1 AND B.k - D.k BETWEEN -1 AND 0 AND A.k = C.k AND C.j >= D.j",
    "thetas": "A.s <> B.s AND A.k = B.k AND B.k * C.j = 2 AND C.k = D.k AND C.s <> D.s",
    "three at once": "A.k + B.k = C.k AND A.k = D.k AND B.j = D.j",
    "a cross product": "A.k = B.k AND C.k = D.k AND C.j = D.j",
    "nothing but a triple": "A.k + B.k = C.k AND D.k = 1 AND C.j = D.j",
}
FORMS = ("eddy(A B C D)", "eddy:rank(D B C A)", "stairs((((A B) C) D))", "stairs(((B D) (C A)))")


def pushed(seed: int, most: int = 6) -> list[dict[str, Any]]:
    """Steps of random rows with NULLs; `v` is different in every row."""
    chance, steps, number = Random(seed), [], 0
    for begin in range(0, 12, 2):
        step = {}
        for name in "ABCD":
            size = chance.randint(0, most)
            step[name] = table(
                sorted(begin + chance.random() * 2 for _ in range(size)),
                k=[chance.choice((1, 1, 2, None)) for _ in range(size)],
                j=[chance.choice((1, 2, 2, None)) for _ in range(size)],
                s=[chance.choice("xy") for _ in range(size)],
                v=[float(number + i) for i in range(size)],
            )
            number += size
        steps.append(step)
    return steps


def run(sql: str, plan: str | None, steps: list[dict[str, Any]]) -> tuple[Counter[tuple[Any, ...]], Any]:
    made = engine("ABCD")
    made.add_query("q", sql, plan=plan)
    found: Counter[tuple[Any, ...]] = Counter()
    for step in steps:
        found.update(tuple(row.values()) for row in made.push(step)["q"].to_pylist())
    return found, made


@cache
def default(sql: str, seed: int) -> Counter[tuple[Any, ...]]:
    return run(sql, None, pushed(seed))[0]


@pytest.mark.parametrize("where", WHERE.values(), ids=WHERE)
@pytest.mark.parametrize("form", FORMS)
def test_the_answer_is_that_of_the_default_plan(fifth: int, form: str, where: str) -> None:
    sql = f"{SELECT}{where} WINDOW 5 SECONDS"
    seeds = (0, 1 + fifth)
    for seed in seeds:
        assert run(sql, form, pushed(seed))[0] == default(sql, seed)
    assert any(default(sql, seed) for seed in seeds)


@pytest.mark.parametrize("where", WHERE.values(), ids=WHERE)
def test_a_batch_may_be_cut(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql, steps = f"{SELECT}{where} WINDOW 5 SECONDS", pushed(7)
    whole, _ = run(sql, FORMS[0], steps)
    monkeypatch.setattr(cacq_eddy, "BATCH", 2)
    cut, _ = run(sql, FORMS[0], steps)
    assert cut == whole


@pytest.mark.parametrize("form", FORMS)
def test_rows_windows_and_aggregates_stand_on_them(form: str) -> None:
    sources = "A [ROWS 3], B [RANGE 2 SECONDS], C [ROWS 2], D [RANGE 3 SECONDS]"
    for sql in (
        f"SELECT A.v AS a, B.v AS b, C.v AS c, D.v AS d FROM {sources} WHERE {WHERE['a ring of keys']}",
        f"SELECT A.k, COUNT(*) AS n, MAX(D.v) AS m FROM {sources} WHERE {WHERE['one key']} GROUP BY A.k EVERY 2 SECOND",
    ):
        wanted, _ = run(sql, None, pushed(3))
        found, _ = run(sql, form, pushed(3))
        assert found == wanted
        assert wanted
