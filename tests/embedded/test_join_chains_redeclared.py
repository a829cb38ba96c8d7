"""Chains of outer joins on a checkpoint, of which streams are declared with their columns in another order, or more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms

COLUMNS = ("k BIGINT", "j BIGINT", "v STRING", "ts TIMESTAMP")
JOINED = "FROM A LEFT JOIN B ON A.k = B.k LEFT JOIN C ON B.j = C.j"
CHAINS = {
    "three": f"SELECT A.v AS a, B.v AS b, C.v AS c {JOINED} WINDOW 20 SECONDS",
    "four": f"SELECT A.v AS a, B.v AS b, C.v AS c, D.v AS d {JOINED} LEFT JOIN B D ON D.k = A.j WINDOW 20 SECONDS",
    "all": f"SELECT * {JOINED} WINDOW 20 SECONDS",
}


def rows(name: str, *keys: int) -> pa.Table:
    times = pa.array([key * 1_000_000 for key in keys], pa.timestamp("us"))
    return pa.table({"k": [1] * len(keys), "j": [1] * len(keys), "v": [f"{name}{key}" for key in keys], "ts": times})


def answers(checkpoint: Path | None, sql: str, other: Mapping[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """What a query answers over two steps, before the second of which streams are declared otherwise."""
    found: list[dict[str, Any]] = []
    engine = ms.Engine(checkpoint=checkpoint)
    for step, more in enumerate(({}, other)):
        if checkpoint is not None and step:
            engine.close()
            engine = ms.Engine(checkpoint=checkpoint)
        if checkpoint is not None or not step:
            for name in "ABC":
                engine.create_stream(name, ", ".join(more.get(name, COLUMNS)), timestamp="ts")
            engine.add_query("q", sql)
        pushed = {name: rows(name, 4 * step + 1 + at, 4 * step + 2 + at) for at, name in enumerate("ABC")}
        for name in more:
            pushed[name] = pushed[name].append_column("w", pa.array([0, 0]))
        found += engine.push(pushed)["q"].to_pylist()
    engine.close()
    return sorted(({**row} for row in found), key=str)


@pytest.mark.parametrize("stream", "ABC")
@pytest.mark.parametrize("chain", ["three", "four"])
def test_another_order_changes_no_answer(chain: str, stream: str, tmp_path: Path) -> None:
    turned = {stream: (*COLUMNS[2:], *COLUMNS[:2])}
    assert answers(tmp_path, CHAINS[chain], turned) == answers(None, CHAINS[chain], {}) != []


def test_all_columns_are_those_of_the_stream_as_it_is_now(tmp_path: Path) -> None:
    (last,) = (row for row in answers(tmp_path, CHAINS["all"], {"A": COLUMNS[::-1]}) if row["ts"].second == 5
               and row["v_1"] == "B6" and row["v_2"] == "C7")  # fmt: skip
    assert list(last)[:4] == ["ts", "v", "j", "k"] and last["v"] == "A5"


def test_more_columns_of_all_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ms.CheckpointError, match=r"no query joins A, B with these columns, .* has others: A\.w \("):
        answers(tmp_path, CHAINS["all"], {"A": (*COLUMNS, "w BIGINT")})
