"""Texts that are nearly queries are queries, or are refused with a place and a remedy: never a fault.

Words of valid queries are left out, doubled, exchanged and mixed with words of others.
"""

from __future__ import annotations

import re
from random import Random

import pyarrow as pa
import pytest

import midstream as ms
from tests.docs.test_language_table import EXAMPLE, TAKEN
from tests.drawing import FIFTHS, SOAK

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

TEXTS = (40_000 if SOAK else 3000) // len(FIFTHS)
COLUMNS = "k BIGINT, v DOUBLE, s VARCHAR, ts TIMESTAMP, o BOOLEAN, m DECIMAL(10, 2), l BIGINT[], n STRUCT(x BIGINT)"
ALSO = (
    "SELECT A.k, ts, m * 2.50 AS d FROM A [RANGE 20 SECONDS], B [ROWS 5] WHERE A.k = B.k AND A.v < 1e5",
    "SELECT k, ts FROM A UNION SELECT k, ts FROM B",
    "SELECT k, ts FROM A EXCEPT SELECT k, ts FROM B",
    "SELECT k, ts FROM A INTERSECT SELECT k, ts FROM B",
    "SELECT k FROM A UNION ALL SELECT A.k + 1 FROM A JOIN B ON A.k = B.k WINDOW 5 SECONDS",
    "SELECT DISTINCT k, s FROM A [RANGE 10 SECONDS] EVERY 5 SECONDS",
    "SELECT k, QUANTILE_CONT(v, 0.25) FILTER (WHERE o) AS q, STRING_AGG(s, ',' ORDER BY v) AS t FROM A [NOW] "
    "GROUP BY k HAVING COUNT(*) > 1 EVERY 2 SECONDS",
    "SELECT l[1] AS one, n.x, CAST(s AS DECIMAL(10, 2)) AS c, s::BIGINT AS b, ts + INTERVAL '1' HOUR AS later FROM A",
    "SELECT CASE WHEN k IN (1, 2) THEN 'a' ELSE COALESCE(s, 'b') END AS c, v IS NOT NULL AS d FROM A WHERE s LIKE 'x%'",
    "SELECT SUBSTRING(s, 1, 2) AS a, ROUND(v, 2) AS b, DATE_TRUNC('hour', ts) AS c, STRFTIME(ts, '%Y') AS d FROM A",
    "SELECT k FROM A WHERE NOT EXISTS (SELECT 1 FROM B WHERE B.k = A.k AND B.v > 0.5) WINDOW 5 SECONDS",
    "SELECT A.k FROM A EXCEPT ON (k) B WINDOW 5 SECONDS",
    "SELECT A.k, B.v FROM A LEFT JOIN B ON A.k = B.k AND A.ts BETWEEN B.ts - INTERVAL 5 SECONDS AND B.ts",
    "WITH x AS (SELECT k, v FROM A WHERE v > 1) SELECT x.k, B.v FROM x, B WHERE x.k = B.k WINDOW 5 SECONDS",
)
WORDS = """
    NULL 0 -1 .5 1e5 1e5. .0.5 1_0 20. 99999999999999999999 1e999 0x1F ts ( ) [ ] , . * :: || -> ? { } $1 @ : ; \\
    '' '{' "A" `a` -- /* E'\\x' NULL NaN TRUE LIMIT ORDER DISTINCT ALL UNION EXCEPT nosuch INTERVAL MONTH _ts
    window_end DECIMAL(38,10) MAP STRUCT x'00' ² é \x00 \ud800
"""
WORD = re.compile(r"'[^']*'|\d+\.\d*|\w+|::|\S")


def texts() -> list[list[str]]:
    """The words of each of the valid queries."""
    return [WORD.findall(text) for text in (*EXAMPLE.findall(TAKEN), *ALSO)]


def mangled(valid: list[list[str]], rng: Random) -> str:
    """A valid query to which a few things are done."""
    words = [*rng.choice(valid)]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        at, other = rng.randrange(len(words)), rng.choice(valid)
        begin = rng.randrange(len(other))
        match rng.randrange(7):
            case 0 if len(words) > 1:
                del words[at]
            case 1:
                words.insert(at, words[at])
            case 2:
                to = rng.randrange(len(words))
                words[at], words[to] = words[to], words[at]
            case 3:
                words[at:at] = other[begin : begin + rng.randint(1, 6)]
            case 4:
                words[at] = rng.choice(WORDS.split())
            case 5:
                words.insert(at, rng.choice(WORDS.split()))
            case _:
                words[at] = rng.choice(other)
    text = " ".join(words)
    return re.sub(r"\s*\.\s*", ".", text) if rng.random() < 0.8 else text


def engine() -> ms.Engine:
    made = ms.Engine()
    for name in "AB":
        made.create_stream(name, COLUMNS, timestamp="ts")
    made.table("rates", pa.table({"k": [1, 2], "rate": [1.5, 2.5]}))
    return made


def test_a_mangled_text_is_answered_or_refused_with_place_and_remedy(fifth: int) -> None:
    rng, valid, one = Random(fifth), texts(), engine()
    taken = 0
    for _ in range(TEXTS):
        text = mangled(valid, rng)
        try:
            one.add_query("q", text)
        except ms.InternalError as error:
            pytest.fail(f"{text}\n{error}")
        except ms.MidstreamError as error:
            assert error.place and error.remedy, f"{text}\n{error}"
        else:
            taken, one = taken + 1, engine()
    assert taken >= TEXTS // 50, "hardly any text is near a query"
