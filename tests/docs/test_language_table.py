"""Every line of docs/language_table.md is executed: what stands here is answered, what does not is refused."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import midstream as ms
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "language_table.md").read_text(encoding="utf-8")
TAKEN, _, REST = TEXT.partition("midstream refuses these forms, because it does not support them yet:")
REFUSED = REST.partition("## NEXMark")[0]
EXAMPLE = re.compile(r"\| ``?(?=SELECT|WITH)(.*?)``? \|$", re.MULTILINE)


def engine() -> ms.Engine:
    made = ms.Engine()
    for name in "AB":
        made.create_stream(name, "k BIGINT, v DOUBLE, s VARCHAR, ts TIMESTAMP", timestamp="ts")
    made.table("rates", pa.table({"k": [1, 2], "rate": [1.5, 2.5]}))
    return made


@pytest.mark.parametrize("text", [found.strip() for found in EXAMPLE.findall(TAKEN)])
def test_what_stands_here_is_answered(text: str) -> None:
    one = engine()
    one.add_query("q", text)
    answered = 0
    for second in (1, 2, 3, 40, 4000, 90_000):
        times = pa.array([second * 1_000_000] * 2, pa.timestamp("us"))
        rows = pa.table({"k": [1, second], "v": [1.0, float(second)], "s": ["1,2", '{"a": [1]}'], "ts": times})
        answered += one.push({"A": rows, "B": rows})["q"].num_rows
    differs = "EXCEPT" in text or "NOT EXISTS" in text
    assert answered or differs, "no answer"


@pytest.mark.parametrize("text", [found.strip() for found in EXAMPLE.findall(REFUSED)])
def test_what_does_not_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(ms.MidstreamError) as refused:
        engine().add_query("q", text)
    assert refused.value.remedy


def test_the_tables_are_read() -> None:
    assert len(EXAMPLE.findall(TAKEN)) > 28 and len(EXAMPLE.findall(REFUSED)) > 4
