from __future__ import annotations

import pytest

from midstream.model.errors import LanguageError
from tests.unit.language.schemas import parsed

CASES = [
    ("SELECT nope FROM A", "unknown column 'nope'", "line 1, column 8", "use one of: k"),
    ("SELECT A.valu, A.v FROM A", "unknown column 'A.valu'", "line 1, column 8", "A.v"),
    ("SELECT k\nFROM A,\n  Nope", "unknown stream 'Nope'", "line 3, column 3", "use one of: A, B"),
    ("SELECT X.k FROM A", "unknown source 'X'", "line 1, column 8", "use one of: A"),
    ("SELECT k FROM A [ROWS 1], B [ROWS 1]", "'k' is ambiguous", "line 1, column 8", "A.k, B.k"),
    ("SELECT A.k FROM A, B [ROWS 1]", "stream 'A' has no window", "line 1, column 17", "[RANGE n unit]"),
    ("SELECT COUNT(*) FROM A EVERY 1 SECOND", "no window", "line 1, column 22", "WINDOW n unit"),
    ("SELECT A.k FROM A [ROWS 1], A [ROWS 2]", "two sources are called 'A'", "line 1, column 29", "alias"),
    ("SELECT A.k FROM A [ROWS 1], B [ROWS 1] WHERE A.k = B.s", "BIGINT and VARCHAR", "line 1, column 46", "CAST"),
    ("SELECT k FROM A WHERE k > 'x'", "BIGINT and VARCHAR", "line 1, column 23", "CAST"),
    ("SELECT k FROM A WHERE ts > 'soon'", "'soon' is no TIMESTAMP", "line 1, column 23", "literal"),
    ("SELECT k FROM A WHERE k", "a condition of type BIGINT", "line 1, column 23", "compare"),
    ("SELECT k FROM A WHERE s + 1 > 2", "arithmetic of a VARCHAR", "line 1, column 23", "integer"),
    ("SELECT k FROM A WHERE nested = nested", "do not compare", "line 1, column 23", "plain types"),
    ("SELECT foo(k) FROM A", "unknown function 'FOO'", "line 1, column 8", "docs/functions.md"),
    ("SELECT SPLITPART(s, ',', 1) FROM A", "unknown function 'SPLITPART'", "line 1, column 8", "perhaps SPLIT_PART"),
    ("SELECT CORR(k, v) FROM A", "unknown aggregate 'CORR'", "line 1, column 8", "SUM, AVG"),
    ("SELECT round(v, k) FROM A", "no constant", "line 1, column 8", "whole number"),
    ("SELECT CURRENT_TIMESTAMP FROM A", "cannot stand here", "line 1, column", "the language has"),
    ("SELECT CAST(k AS FOO) FROM A", "unknown type FOO", "line 1, column 13", "use BOOLEAN"),
    ("SELECT k FROM A WHERE ts > ts + INTERVAL 1 MONTH", "no fixed length", "line 1, column 28", "days"),
    ("SELECT k FROM A WHERE k IN (SELECT 1)", "a subquery that is more", "line 1, column 23", "EXISTS (SELECT 1"),
    ("SELECT k FROM A WHERE k IN (SELECT * FROM B)", "other than one column", "line 1, column 23", "IN (SELECT b"),
    ("SELECT k FROM A WHERE k = 1 OR EXISTS (SELECT 1 FROM B)", "a subquery", "line 1, column", "the language has"),
    (
        "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM B) AND k NOT IN (SELECT k FROM B b) WINDOW 1 DAY",
        "a second subquery",
        "line 1, column 52",
        "one stream's rows",
    ),
    ("SELECT k FROM (SELECT 1) x", "NO STREAM in a subquery", "line 1, column", "selects and filters"),
    ("SELECT k FROM (SELECT k FROM A)", "a subquery without a name", "line 1, column", "AS x"),
    ("SELECT k FROM (SELECT k FROM A ORDER BY k) x", "ORDER in a subquery", "line 1, column", "selects and filters"),
    ("SELECT k FROM (SELECT SUM(k) AS k FROM A) x", "an aggregate in a subquery", "line 1, column", "EVERY so often"),
    ("SELECT x.v FROM (SELECT k FROM A) x", "unknown column 'x.v'", "line 1, column 8", "x.k"),
    ("SELECT k FROM (SELECT z AS k FROM A) x", "unknown column 'z'", "line 1, column 23", "k"),
    (
        "SELECT k FROM (SELECT k FROM A WHERE v > 1) x [ROWS 3]",
        "a ROWS window on the subquery",
        "line 1, column",
        "RANGE",
    ),
    ("WITH RECURSIVE x AS (SELECT k FROM A) SELECT k FROM x", "a recursive WITH", "line 1, column", "name them"),
    ("SELECT SUM(k) OVER () FROM A [ROWS 3] EVERY 1 DAY", "SUM ... OVER is not", "line 1, column 8", "GROUP BY"),
    ("SELECT k FROM A WHERE k = ?", "a parameter", "line 1, column", "the language has"),
    ("SELECT * EXCLUDE (k) FROM A", "EXCLUDE", "line 1, column", "list the columns"),
    ("SELECT DISTINCT k FROM A", "DISTINCT over a stream needs EVERY", "line 1, column", "EVERY 10 SECONDS"),
    ("SELECT DISTINCT * FROM A [ROWS 3] EVERY 1 DAY", "DISTINCT ON, or of *", "line 1, column", "list the columns"),
    ("SELECT DISTINCT COUNT(*) FROM A [ROWS 3] EVERY 1 DAY", "beside GROUP BY", "line 1, column", "leave it out"),
    ("SELECT k FROM A ORDER BY k", "ORDER BY is not part", "line 1, column 26", "order of their time"),
    ("SELECT k FROM A LIMIT 3", "LIMIT is not part", "line 1, column 23", "leave it out"),
    ("SELECT k FROM A [ROWS 3] HAVING k > 1", "need EVERY", "line 1, column 33", "EVERY 10 SECONDS"),
    ("SELECT COUNT(*) FROM A [ROWS 3] HAVING k > 1 EVERY 1 DAY", "A.k is not grouped", "line 1, column 40", "GROUP BY"),
    ("SELECT COUNT(*) AS n FROM A [ROWS 3] HAVING n EVERY 1 DAY", "of type BIGINT", "line 1, column", "compare it"),
    ("SELECT SUM(k) FILTER (WHERE v) FROM A [ROWS 3] EVERY 1 DAY", "of type DOUBLE", "line 1, column", "compare it"),
    ("SELECT SUM(k) FILTER (WHERE SUM(k) > 1) FROM A [ROWS 3] EVERY 1 DAY", "an aggregate", "line 1, column", "nested"),
    ("SELECT ABS(k) FILTER (WHERE k > 1) FROM A", "FILTER", "line 1, column", "the language has"),
    ("SELECT STDDEV(s) FROM A [ROWS 3] EVERY 1 DAY", "STDDEV_SAMP of a VARCHAR", "line 1, column 8", "numbers"),
    ("WITH x AS (SELECT 1) SELECT k FROM x", "NO STREAM in a subquery", "line 1, column", "selects and filters"),
    ("SELECT A.k FROM A LEFT JOIN B ON A.k = B.k", "stream 'A' has no window", "line 1, column 17", "RANGE n unit"),
    ("SELECT A.k FROM A LEFT JOIN B WINDOW 1 DAY", "LEFT JOIN without a condition", "line 1, column 29", "write ON"),
    ("SELECT A.k FROM A FULL JOIN B USING (k) WINDOW 1 DAY", "FULL JOIN with USING", "line 1, column 29", "write ON"),
    (
        "SELECT A.k FROM A [ROWS 3] LEFT JOIN B ON A.k = B.k WINDOW 1 DAY",
        "LEFT JOIN with a ROWS window on 'A'",
        "line 1, column 38",
        "[RANGE n unit]",
    ),
    (
        "SELECT A.k FROM A JOIN B ON A.k = B.k FULL OUTER JOIN B c ON A.k = c.k WINDOW 1 DAY",
        "FULL JOIN of more than two streams",
        "line 1, column 55",
        "two streams",
    ),
    (
        "SELECT COUNT(*) FROM A LEFT JOIN B ON A.k = B.k GROUP BY A.k WINDOW 1 DAY EVERY 1 DAY",
        "LEFT JOIN below an aggregate",
        "line 1, column 34",
        "a subquery",
    ),
    (
        "SELECT B.k FROM A ANTI JOIN B ON A.k = B.k WINDOW 1 DAY",
        "unknown source 'B'",
        "line 1, column 8",
        "use one of: A",
    ),
    (
        "SELECT A.k FROM A LEFT JOIN B ON A.k = B.k AND CAST(A.s AS INT) > CAST(B.s AS INT) + A.k WINDOW 1 DAY",
        "cannot be evaluated for every pair",
        "line 1, column 29",
        "TRY_CAST",
    ),
    ("SELECT A.k FROM A JOIN B USING (zz) WINDOW 5 SECONDS", "'zz', which", "line 1, column", "write ON"),
    ("SELECT A.k FROM A NATURAL JOIN B", "NATURAL JOIN", "line 1, column 32", "LEFT, RIGHT, FULL"),
    ("SELECT k FROM A UNION SELECT k FROM B", "UNION is not part", "line 1, column 17", "UNION ALL"),
    ("SELECT k FROM A EXCEPT SELECT k FROM B", "EXCEPT is not part", "line 1, column 17", "EXCEPT ON"),
    ("SELECT k FROM A; SELECT k FROM B", "2 statements", "line 1, column", "SELECT ..."),
    ("DROP TABLE A", "not DROP", "line 1, column", "SELECT ..."),
    ("", "0 statements", "line 1, column 1", "SELECT ..."),
    ("SELECT 1", "reads no stream", "line 1, column 9", "SELECT ..."),
    ("SELECT k FRM A", "no SQL near 'A'", "line 1, column 14", "SELECT ..."),
    ("SELECT k FROM A WHERE k =", "something is missing", "line 1, column 25", "SELECT ..."),
    ("SELECT 'a FROM A", "split into words", "line 1, column 8", "close the quote"),
    ("SELECT k FROM A [RANGE -5 SECONDS]", "RANGE is negative", "line 1, column 24", "zero or more"),
    ("SELECT k FROM A [RANGE 5 PARSECS]", "unknown unit 'PARSECS'", "line 1, column 24", "seconds"),
    ("SELECT k FROM A [RANGE 5]", "RANGE cannot be read", "line 1, column 24", "5 seconds"),
    ("SELECT k FROM A [RANGE UNBOUNDED]", "RANGE needs a number", "line 1, column 24", "RANGE 20 SECONDS"),
    ("SELECT k FROM A [ROWS 0]", "ROWS 0", "line 1, column 18", "at least 1"),
    ("SELECT k FROM A [ROWS 1.5]", "ROWS 1.5", "line 1, column 18", "at least 1"),
    ("SELECT k FROM A [ROWS -3]", "ROWS -3", "line 1, column 18", "at least 1"),
    ("SELECT k FROM A [LAST 3]", "unknown window 'LAST'", "line 1, column 18", "[RANGE n unit]"),
    ("SELECT k FROM A [ROWS 3", "does not end here", "line 1, column 24", "[RANGE n unit]"),
    ("SELECT k FROM A [ROWS 3] [ROWS 4]", "belongs to no stream", "line 1, column 26", "each stream"),
    ("SELECT k FROM A WINDOW 3 SECONDS WINDOW 4 SECONDS", "WINDOW is given twice", "line 1, column 34", "one WINDOW"),
    ("SELECT COUNT(*) FROM A [ROWS 3]", "need EVERY", "line 1, column", "EVERY 10 SECONDS"),
    ("SELECT k FROM A [ROWS 3] GROUP BY k", "need EVERY", "line 1, column 35", "EVERY 10 SECONDS"),
    ("SELECT k FROM A [ROWS 3] EVERY 5 SECONDS", "EVERY without", "line 1, column 26", "leave EVERY out"),
    ("SELECT COUNT(*) FROM A [ROWS 3] EVERY 0 SECONDS", "EVERY 0", "line 1, column 33", "above zero"),
    ("SELECT COUNT(*) FROM A [ROWS 3] EVERY -1 SECONDS", "negative", "line 1, column 39", "zero or more"),
    ("SELECT v, COUNT(*) FROM A [ROWS 3] GROUP BY k EVERY 1 DAY", "A.v is not grouped", "line 1, column 8", "GROUP BY"),
    ("SELECT COUNT(*) FROM A [ROWS 3] GROUP BY 2 EVERY 1 DAY", "no column 2", "line 1, column 42", "1 to 1"),
    ("SELECT COUNT(*) FROM A [ROWS 3] GROUP BY ROLLUP (k) EVERY 1 DAY", "ROLLUP", "line 1, column", "list"),
    ("SELECT SUM(COUNT(*)) FROM A [ROWS 3] EVERY 1 DAY", "an aggregate", "line 1, column", "not nested"),
    ("SELECT SUM(s) FROM A [ROWS 3] EVERY 1 DAY", "SUM of a VARCHAR", "line 1, column 8", "numbers"),
    ("SELECT SUM(DISTINCT k) FROM A [ROWS 3] EVERY 1 DAY", "DISTINCT", "line 1, column 8", "COUNT(DISTINCT x)"),
    ("SELECT k FROM A WHERE COUNT(*) > 1", "an aggregate", "line 1, column", "the language has"),
    ("SELECT k FROM A WHERE _ts > '2013-01-01'", "_ts is the time", "line 1, column 23", "timestamp columns"),
    ("SELECT k FROM A [ROWS 1] EXCEPT ON (z) B [ROWS 1]", "unknown column", "line 1, column 37", "use one of"),
    ("SELECT k FROM A [ROWS 1] EXCEPT ON (k) Z [ROWS 1]", "unknown stream 'Z'", "line 1, column 40", "A, B"),
    ("SELECT k FROM A [ROWS 1] EXCEPT ON (k) B", "stream 'B' has no window", "line 1, column 40", "[RANGE n unit]"),
    ("SELECT k FROM A [ROWS 1] EXCEPT ON k B [ROWS 1]", "expected '('", "line 1, column 36", "EXCEPT ON"),
    ("SELECT B.k FROM A [ROWS 1] EXCEPT ON (k) B [ROWS 1]", "unknown source 'B'", "line 1, column 8", "A"),
    ("SELECT A.k FROM A [ROWS 1], C [ROWS 1] EXCEPT ON (k) B [ROWS 1]", "not from a join", "line 1, column 54", "one"),
    ("SELECT COUNT(*) FROM A [ROWS 1] EXCEPT ON (k) B [ROWS 1] EVERY 1 DAY", "over EXCEPT", "line 1, column", "log"),
    (
        "SELECT A.k FROM A [ROWS 1] EXCEPT ON (k) B [ROWS 1] WHERE A.v < B.v",
        "reads several sources",
        "line 1, column 42",
        "EXCEPT ON (columns)",
    ),
]


@pytest.mark.parametrize(("text", "message", "place", "remedy"), CASES, ids=[case[0][:60] for case in CASES])
def test_what_is_wrong_is_named_with_place_and_remedy(text: str, message: str, place: str, remedy: str) -> None:
    with pytest.raises(LanguageError) as raised:
        parsed(text)
    error = raised.value
    assert message in error.message
    assert error.place == place if place[-1].isdigit() else error.place.startswith(place)
    assert remedy in error.remedy


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with pytest.raises(LanguageError, match="nested too deeply"):
        parsed("SELECT k FROM A WHERE " + "(" * 5000 + "1 = 1" + ")" * 5000)
