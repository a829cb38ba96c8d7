"""A scalar function of another distribution is one file: queries call it by its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
import midstream.expr.kernels as room
from midstream.cli.main import main
from midstream.expr.scalar_function import brought
from tests.extension import distribution

INITIALS = '''
"""A function of another package."""

import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.rules import counted
from midstream.expr.scalar_function import ScalarFunction
from midstream.expr.shaped_rules import shaped


class Initials(ScalarFunction):
    """Return the first characters of a text, in capitals.

    There must be as many.
    """

    name = "{name}"
    can_fail = True

    def rule(self, arguments):
        return counted(2, 2, shaped(pa.string(), "text", "whole"))(arguments)

    def evaluate(self, type, texts, sizes):
        if pc.any(pc.less(sizes, 0)).as_py():
            raise ValueError("fewer than no characters")
        found = [
            None if text is None or size is None or size > len(text) else text[:size].upper()
            for text, size in zip(texts.to_pylist(), sizes.to_pylist())
        ]
        return pa.array(found, {type})
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from another(tmp_path, monkeypatch)


def another(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "initials", type: str = "type"
) -> Iterator[None]:
    declared = {"midstream.functions": {name: "initials_of_texts:Initials"}}
    text = INITIALS.format(name=name, type=type)
    monkeypatch.syspath_prepend(distribution(folder / "another", declared, initials_of_texts=text))
    brought.cache_clear()
    yield
    brought.cache_clear()
    sys.modules.pop("initials_of_texts", None)


def streams() -> ms.Engine:
    engine = ms.Engine()
    for name in "AB":
        engine.create_stream(name, "s VARCHAR, n BIGINT, ts TIMESTAMP", timestamp="ts")
    return engine


def rows(*values: tuple[str | None, int]) -> pa.Table:
    texts, numbers = zip(*values, strict=True)
    moment = pa.array([1_000_000] * len(values), pa.timestamp("us"))
    return pa.table({"s": texts, "n": pa.array(numbers, pa.int64()), "ts": moment})


@pytest.mark.usefixtures("installed")
def test_a_query_calls_it_in_a_list_a_filter_a_join_and_a_group(tmp_path: Path) -> None:
    engine = streams()
    engine.add_query("list", "SELECT INITIALS(s, n) AS i, initials(s, 1) AS first FROM A WHERE initials(s, 1) <> 'X'")
    engine.add_query("join", "SELECT A.s FROM A, B WHERE initials(A.s, 2) = initials(B.s, 2) WINDOW 9 SECONDS")
    engine.add_query(
        "groups", "SELECT initials(s, 1) AS g, COUNT(*) AS c FROM A [RANGE 9 SECONDS] GROUP BY 1 EVERY 1 SECOND"
    )
    found = engine.push({"A": rows(("abc", 2), ("xy", 1), (None, 1)), "B": rows(("ABBA", 0), ("bcd", 0))})
    assert found["list"].to_pylist() == [{"i": "AB", "first": "A"}]
    assert found["join"].to_pylist() == [{"s": "abc"}]
    engine.save(tmp_path / "saved")
    again = ms.Engine.load(tmp_path / "saved")
    later = pa.array([3_000_000], pa.timestamp("us"))
    groups = again.push({"A": pa.table({"s": ["qq"], "n": [1], "ts": later})})["groups"].to_pylist()
    assert sorted((one["g"] or "", one["c"]) for one in groups[:3]) == [("", 1), ("A", 1), ("X", 1)]


@pytest.mark.usefixtures("installed")
def test_a_constant_is_computed_once_and_a_wrong_call_is_refused_at_its_place() -> None:
    engine = streams()
    engine.add_query("q", "SELECT initials('midstream', 3) AS x FROM A")
    assert engine.push({"A": rows(("a", 1))})["q"].to_pylist() == [{"x": "MID"}]
    with pytest.raises(ms.MidstreamError, match="must be 2, not 1") as refused:
        engine.add_query("r", "SELECT initials(s) AS x FROM A")
    assert "8" in refused.value.place
    with pytest.raises(ms.MidstreamError, match="take a VARCHAR"):
        engine.add_query("r", "SELECT initials(s, s) AS x FROM A")


@pytest.mark.usefixtures("installed")
def test_a_row_for_which_it_has_no_value_is_a_dead_letter() -> None:
    engine = streams()
    engine.add_query("q", "SELECT initials(s, n) AS x FROM A")
    assert engine.push({"A": rows(("abc", 9), ("abc", 1), (None, 1))})["q"].to_pylist() == [{"x": "A"}, {"x": None}]
    assert engine.dead_letters["q"].num_rows == 1


@pytest.mark.usefixtures("installed")
def test_what_it_raises_names_it() -> None:
    engine = streams()
    engine.add_query("q", "SELECT initials(s, n) AS x FROM A")
    with pytest.raises(ms.QueryError, match="fewer than no characters") as raised:
        engine.push({"A": rows(("abc", -1))})
    assert "initials" in raised.value.place and raised.value.remedy


def test_what_is_of_another_type_than_its_rule_says_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in another(tmp_path, monkeypatch, type="pa.large_binary()"):
        engine = streams()
        engine.add_query("q", "SELECT initials(s, n) AS x FROM A")
        with pytest.raises(ms.QueryError, match="large_binary"):
            engine.push({"A": rows(("abc", 1))})


def test_a_name_that_the_parser_knows_is_free_where_the_language_has_no_such_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in another(tmp_path, monkeypatch, "levenshtein"):
        engine = streams()
        engine.add_query("q", "SELECT LEVENSHTEIN(s, n) AS x FROM A")
        assert engine.push({"A": rows(("abc", 2))})["q"].to_pylist() == [{"x": "AB"}]


def test_a_name_of_the_language_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in another(tmp_path, monkeypatch, "upper"):
        with pytest.raises(ms.MidstreamError, match="upper"):
            streams().add_query("q", "SELECT initials(s, n) AS x FROM A")


@pytest.mark.usefixtures("installed")
def test_the_command_line_lists_it_with_its_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions"]) == 0
    printed = capsys.readouterr().out
    assert "initials" in printed and "first characters of a text" in printed and "date_trunc" in printed
    assert main(["functions", "initials"]) == 0
    assert "There must be as many." in capsys.readouterr().out


def test_a_file_in_the_room_of_kernels_is_all_that_a_function_is(tmp_path: Path) -> None:
    (tmp_path / "initials.py").write_text(INITIALS.format(name="initials", type="type"))
    room.__path__.append(str(tmp_path))
    brought.cache_clear()
    try:
        engine = streams()
        engine.add_query("q", "SELECT initials(s, 1) AS x FROM A")
        assert engine.push({"A": rows(("abc", 2))})["q"].to_pylist() == [{"x": "A"}]
    finally:
        room.__path__.remove(str(tmp_path))
        sys.modules.pop(f"{room.__name__}.initials", None)
        brought.cache_clear()


def test_without_its_package_a_query_that_calls_it_is_refused() -> None:
    with pytest.raises(ms.MidstreamError, match="unknown function 'INITIALS'"):
        streams().add_query("q", "SELECT initials(s, 1) AS x FROM A")
