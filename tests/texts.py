"""Texts of queries that nobody would write, and what must become of each.

`python -m tests.texts [--minutes 60] [--seed 0]` goes on for as long as it is told to.

A text is answered, over rows of odd values, or refused with a place and a remedy: at the declaration, at the first step
or at a later one. Texts come of a grammar (tests/property/test_texts_of_a_grammar.py), and of every text of the docs,
the examples and the tests, whose words are left out, doubled, exchanged and mixed with words of others. The command
prints each fault once and ends with 1 if there was one. A text that was a fault
is kept in `KEPT` of tests/property/test_texts_of_a_grammar.py.
"""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import re
import sys
import time
import traceback
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa

import midstream as ms
from tests.docs.test_language_table import EXAMPLE, TAKEN

ROOT = Path(__file__).parent.parent
COLUMNS = (
    "k BIGINT, v DOUBLE, s VARCHAR, ts TIMESTAMP, o BOOLEAN, m DECIMAL(10, 2), l BIGINT[], n STRUCT(x BIGINT), b BLOB, "
    "d DATE, t TIME, i TINYINT, u UBIGINT, z TIMESTAMPTZ"
)
NAMES = [column.split()[0] for column in COLUMNS.replace("(10, 2)", "").split(", ")]
MORE_COLUMNS = {
    "BIGINT": ["id", "j", "w", "x", "y", "price", "seller", "auction", "bidder", "category", "level", "bucket"],
    "VARCHAR": ["name", "city", "state", "channel", "dest", "origin", "carrier", "flight", "room"],
}
STREAMS = [
    "A",
    "B",
    "C",
    "D",
    "R",
    "T",
    "X",
    "Y",
    "orders",
    "payments",
    "refunds",
    "bid",
    "auction",
    "person",
    "pairs",
    "joined",
    "JFK",
    "LGA",
    "EWR",
]
QUOTED = re.compile(r'`((?:SELECT|WITH)\s[^`]*)`|"((?:SELECT|WITH)\s[^"]*)"|"""\s*((?:SELECT|WITH)\s[\s\S]*?)"""')
WORDS = """
    NULL 0 -1 .5 1e5 1e5. .0.5 1_0 20. 99999999999999999999 1e999 0x1F ts ( ) [ ] , . * :: || -> ? { } $1 @ : ; \\
    '' '{' "A" `a` -- /* E'\\x' NULL NaN TRUE LIMIT ORDER DISTINCT ALL UNION EXCEPT nosuch INTERVAL MONTH _ts
    window_end DECIMAL(38,10) MAP STRUCT x'00' ² é \x00 \ud800 OVER QUALIFY ASOF LATERAL UNNEST TUMBLE HOP USING
    NATURAL FULL EXISTS IN ANY GROUPING SETS ROLLUP FILTER WITHIN AT ZONE PRECEDING UUID '1'::UUID LAG(v) [ROWS
"""
WORD = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|\d+\.\d*|\w+|::|<=>|<=|>=|<>|!=|\|\||->>|->|=>|\S""")


@cache
def written() -> tuple[str, ...]:
    """Return every text of a query in the docs, the examples, the tests and the benchmarks, in order."""
    found: dict[str, None] = dict.fromkeys(EXAMPLE.findall(TAKEN))
    for folder in ("docs", "examples", "benchmarks", "tests", "src/midstream/lab"):
        for file in sorted((ROOT / folder).rglob("*.*")):
            if file.suffix == ".py":
                found.update(dict.fromkeys(_of_python(file.read_text(encoding="utf-8"))))
            elif file.suffix in (".md", ".toml"):
                for match in QUOTED.finditer(file.read_text(encoding="utf-8")):
                    found[next(filter(None, match.groups()))] = None
    return tuple(text for text in found if len(text) < 1500)


def _of_python(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Constant(value=str(text)):
                pass
            case ast.JoinedStr(values=parts):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in parts)
            case _:
                continue
        if re.match(r"\s*(SELECT|WITH)\s", text) and "FROM" in text:
            yield text


ALIKE = (
    NAMES,
    ["0", "1", "-1", "2.5", "1e300", "9223372036854775807", "NULL", "'x'", "'2024-02-29'", "''"],
    ["=", "<", ">=", "<>", "+", "-", "*", "/", "||", "AND", "OR", "IN", "LIKE"],
    ["SECONDS", "MINUTE", "HOURS", "DAY", "MONTH"],
    [
        "COUNT",
        "SUM",
        "AVG",
        "MIN",
        "MAX",
        "MEDIAN",
        "STRING_AGG",
        "ARRAY_AGG",
        "FIRST",
        "LAST",
        "LAG",
        "ROW_NUMBER",
        "RANK",
    ],
    ["TUMBLE", "HOP", "SESSION", "CUMULATE"],
    ["LEFT", "RIGHT", "FULL", "INNER", "SEMI", "ANTI", "ASOF", "CROSS", "NATURAL"],
    ["UPPER", "LENGTH", "ABS", "ROUND", "FLOOR", "YEAR", "DATE_TRUNC", "COALESCE", "CONCAT", "SUBSTRING"],
)


def alike(word: str, rng: Random) -> str:
    """Return a word of the same kind."""
    kinds = [kind for kind in ALIKE if word.upper() in kind or word in kind]
    return rng.choice(rng.choice(kinds or ALIKE[:2]))


def mangled(text: str, rng: Random) -> str:
    """Return a text to which a few things are done."""
    words, texts = WORD.findall(text), written()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, other = rng.randrange(len(words)), WORD.findall(rng.choice(texts))
        begin = rng.randrange(len(other))
        match rng.randrange(20):
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
            case 6:
                words[at] = rng.choice(other)
            case _:
                words[at] = alike(words[at], rng)
    made = " ".join(words)
    return re.sub(r"\s*\.\s*", ".", made) if rng.random() < 0.8 else made


def values() -> pa.Table:
    """Return odd rows; those of the first event time have NULL in all other columns."""
    at = [0, 1_000_000, 2_000_000, 2_000_000]
    found = {
        "k": pa.array([None, 1, -(2**63), 2**63 - 1]),
        "v": pa.array([None, float("nan"), -0.0, float("inf")]),
        "s": pa.array([None, "", "\u00e9\U0001f600", "2024-02-29"]),
        "ts": pa.array(at, pa.timestamp("us")),
        "o": pa.array([None, True, False, True]),
        "m": pa.array([None, "1.25", "-99999999.99", "0.00"]),
        "l": pa.array([None, [], [1, None], [2]]),
        "n": pa.array([None, {"x": None}, {"x": 1}, {"x": 2}]),
        "b": pa.array([None, b"", b"\xff", b"x"]),
        "d": pa.array([None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29)]),
        "t": pa.array([None, dt.time(), dt.time(23, 59, 59, 999999), dt.time(12)]),
        "i": pa.array([None, 127, -128, 0], pa.int8()),
        "u": pa.array([None, 0, 2**64 - 1, 1], pa.uint64()),
        "z": pa.array([None, 0, 2**55, -(2**55)], pa.timestamp("us", "UTC")),
    }
    return pa.table(found)


ROWS = values()
LATER = pa.array([10**12], pa.timestamp("us"))


def ends_well(text: str, *, more: bool = False) -> bool:
    """Add a query and push rows; what is refused has a place and a remedy, and no fault is found.

    Args:
        text: The query.
        more: Whether there are the streams and columns that the docs and tests have, too, not only A and B.

    Returns:
        Whether it was taken.
    """
    one, rows, streams, ddl = ms.Engine(), ROWS, ["A", "B"], COLUMNS
    if more:
        streams = [name for name in STREAMS if re.search(rf"\b{name}\b", text)] or ["A"]
        for kind, names in MORE_COLUMNS.items():
            ddl += "".join(f", {name} {kind}" for name in names)
            for name in names:
                rows = rows.append_column(name, ROWS["k" if kind == "BIGINT" else "s"])
    for name in streams:
        one.create_stream(name, ddl, timestamp="ts")
    one.table("rates", pa.table({"k": [1, 2], "rate": [1.5, 2.5]}))
    try:
        one.add_query("q", text)
    except ms.InternalError:
        raise
    except ms.MidstreamError as error:
        assert error.place and error.remedy, str(error)
        return False
    last = rows.slice(0, 1)
    last = last.set_column(last.column_names.index("ts"), "ts", LATER)
    try:
        for pushed in (rows, rows.slice(3), last):
            one.push(dict.fromkeys(streams, pushed))
        one.explain("q")
    except ms.InternalError:
        raise
    except ms.MidstreamError as error:
        assert error.place and error.remedy, str(error)
    return True


def place_of(fault: BaseException) -> str:
    """Return where a fault happened: faults of one place are told apart by nothing else."""
    while fault.__cause__ is not None:
        fault = fault.__cause__
    frames = [frame for frame in traceback.extract_tb(fault.__traceback__) if "midstream" in frame.filename]
    return f"{type(fault).__name__} at " + " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[:-4:-1])


def main() -> None:
    """Try texts until the time is over."""
    from tests.property.test_texts_of_a_grammar import test_a_text_of_the_grammar_ends_well

    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    until, faults, taken, tried = time.monotonic() + 60 * given.minutes, dict[str, str](), 0, 0
    of_grammar = test_a_text_of_the_grammar_ends_well.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
    texts = written()
    for number in count(given.seed * 10**6):
        if time.monotonic() > until:
            break
        rng = Random(number)
        text = mangled(rng.choice(texts), rng)
        tried += 1
        try:
            taken += ends_well(text, more=True)
            if number % 4 == 0:
                text = f"case {number} of the grammar"
                of_grammar(rng.randbytes(1 << 12))
        except Exception as fault:
            if place_of(fault) not in faults:
                faults[place_of(fault)] = text
                print(f"{place_of(fault)}\n  {text!r}\n  {str(fault)[:300]}", flush=True)
    print(f"{tried:,} texts, {taken:,} taken, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
