"""Files as people have them: of unlike types, damaged, compressed, with their columns in any order."""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import gzip
import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.admission.admit import admit
from midstream.cli.source_columns import folder_warnings, source_columns
from midstream.embedded import file_formats
from midstream.embedded.file_formats import (
    NO_OBJECT_OF_MESSAGE,
    _lines_one_by_one,
    _one_by_one,
    _plain_lines,
    file_columns,
    file_rows,
    json_rows,
)
from midstream.embedded.job_run import FileJob
from midstream.model.errors import InputError, LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.ddl import parse_ddl
from midstream.sql.job_file import parse_job
from midstream.sql.job_specs import SourceSpec

T0 = dt.datetime(2024, 1, 1)
PLAIN = pa.table({"k": [1], "ts": pa.array([T0], pa.timestamp("us")), "v": ["x"]})
SCHEMA = "k BIGINT, ts TIMESTAMP, v VARCHAR"


def files_job(
    folder: Path, format: str = "parquet", schema: str = SCHEMA, more: str = "", sql: str = "SELECT A.k, A.v FROM A"
) -> FileJob:
    """A job that puts out what it reads from `folder/A`."""
    return FileJob(
        parse_job(f"""
            checkpoint = "{folder}/ckpt"
            [streams.A]
            format = "{format}"
            path = "{folder}/A"
            schema = "{schema}"
            timestamp = "ts"
            {more}
            [queries.q]
            sql = "{sql}"
            sink = {{ path = "{folder}/out" }}""")
    )


def test_files_whose_names_are_not_utf_8_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    (tmp_path / "A" / os.fsdecode(b"caf\xe9.json")).write_text('{"k": 1, "ts": "2024-01-01"}\n{"k": 1.5}\n')
    with files_job(tmp_path, "json") as first:
        assert first.step()
    (tmp_path / "A" / os.fsdecode(b"caf\xe8.json")).write_text('{"k": 2, "ts": "2024-01-01"}\n')
    with files_job(tmp_path, "json") as second:
        assert second.step() and not second.step()
    results = sorted((tmp_path / "out").glob("step=*/*.parquet"))
    assert [pq.ParquetFile(file).read()["k"].to_pylist() for file in results] == [[1], [2]]
    (dead,) = (tmp_path / "ckpt" / "dead_letters" / "A").glob("step=*/*.parquet")
    (letter,) = pq.ParquetFile(dead).read().to_pylist()
    assert letter["_file"] == rf"{tmp_path}/A/caf\udce9.json"


def run(folder: Path, *given: Any, **others: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The results and the dead letters of a job that reads all that there is."""
    with files_job(folder, *given, **others) as job:
        while job.step():
            pass
        dead = job.engine.dead_letters.get("A", pa.table({})).to_pylist()
    files = sorted((folder / "out").glob("step=*/*.parquet"))
    return [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()], dead


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "A").mkdir()
    return tmp_path


OTHERS = {
    "a zone": PLAIN.set_column(1, "ts", pa.array([T0], pa.timestamp("us", tz="UTC"))),
    "other units": PLAIN.set_column(1, "ts", pa.array([T0], pa.timestamp("ms"))),
    "a dictionary": PLAIN.set_column(2, "v", pa.array(["x"]).dictionary_encode()),
    "a text": PLAIN.set_column(0, "k", pa.array(["1"])),
    "a narrow number": PLAIN.set_column(0, "k", pa.array([1], pa.int8())),
    "a float": PLAIN.set_column(0, "k", pa.array([1.0])),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("other", OTHERS)
def test_files_of_unlike_types_are_read_each_by_itself(folder: Path, other: str, together: bool) -> None:
    pq.write_table(PLAIN, folder / "A" / "0.parquet")
    if not together:
        run(folder)
    pq.write_table(OTHERS[other], folder / "A" / "1.parquet")
    assert run(folder) == ([{"k": 1, "v": "x"}] * 2, [])


@pytest.mark.parametrize("together", [True, False])
def test_a_value_that_is_none_of_the_type_is_a_dead_letter_that_names_its_file(folder: Path, together: bool) -> None:
    pq.write_table(PLAIN, folder / "A" / "0.parquet")
    if not together:
        run(folder)
    bad = pa.concat_tables([PLAIN, PLAIN, PLAIN]).set_column(0, "k", pa.array(["2", "two", None]))
    pq.write_table(bad, folder / "A" / "1.parquet")
    results, (letter,) = run(folder)
    assert [row["k"] for row in results] == [1, 2, None]
    assert (letter["k"], letter["ts"], letter["v"]) == ("two", T0, "x")
    assert letter["_file"] == str(folder / "A" / "1.parquet")
    assert letter["_reason"] == "column 'k': cannot read 'two' as int64"


def test_a_type_that_is_never_the_declared_one(folder: Path) -> None:
    pq.write_table(PLAIN, folder / "A" / "0.parquet")
    pq.write_table(PLAIN.set_column(0, "k", pa.array([{"a": 1}])), folder / "A" / "1.parquet")
    pq.write_table(PLAIN.set_column(2, "v", pa.array([[1]])), folder / "A" / "2.parquet")
    results, dead = run(folder)
    assert [row["k"] for row in results] == [1]
    assert [letter["_file"][-9:] for letter in dead] == ["1.parquet", "2.parquet"]


LINES = b"k,ts,v\n1,2024-01-01 00:00:00,x\n"
HEADER = 'options = { header = "true" }'
ONE = {"k": 1, "v": "x"}


def test_an_empty_file_beside_a_good_one(folder: Path) -> None:
    (folder / "A" / "0.csv").write_bytes(b"")
    (folder / "A" / "1.csv").write_bytes(LINES)
    (folder / "A" / "2.csv").write_bytes(b"\n\n")
    (folder / "A" / "3.csv").write_bytes(b"k,ts,v")
    assert run(folder, "csv", more=HEADER) == ([ONE], [])


@pytest.mark.parametrize("line", ["2,caf\xe9,2024-01-01 00:00:01", "2,\xe9", '2,"caf\xe9, ""x""",2024-01-01', "\xe9"])
def test_bytes_that_are_no_text_are_a_dead_letter(folder: Path, line: str, capfd: pytest.CaptureFixture[str]) -> None:
    good = "1,na\u00efve,2024-01-01\n".encode()
    (folder / "A" / "0.csv").write_bytes(b"k,v,ts\n" + good + line.encode("latin-1") + b"\n" + good)
    results, (letter,) = run(folder, "csv", more=HEADER)
    assert results == [{"k": 1, "v": "na\u00efve"}] * 2
    assert letter["_file"].endswith("/A/0.csv")
    assert "cannot read" in letter["_reason"] or "NULL" in letter["_reason"]
    assert "Traceback" not in capfd.readouterr().err


def packed(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data[:9]) + gzip.compress(data[9:])  # Several members, as by `cat a.gz b.gz`.
    if suffix == ".bz2":
        return bz2.compress(data)
    return bytes(pa.compress(data, "zstd", asbytes=True))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_compressed_files(folder: Path, suffix: str) -> None:
    (folder / "A" / "0.csv").write_bytes(LINES)
    (folder / "A" / f"1.csv{suffix}").write_bytes(packed(LINES, suffix))
    assert run(folder, "csv", more=HEADER) == ([ONE] * 2, [])


def test_compressed_lines_of_json_and_a_schema_that_is_read_off_them(folder: Path) -> None:
    line = b'{"k": 1, "v": "x", "ts": "2024-01-01"}\n'
    (folder / "A" / "0.json.gz").write_bytes(packed(line, ".gz"))
    assert run(folder, "json") == ([ONE], [])


def test_a_file_that_is_not_what_it_is_called(folder: Path) -> None:
    (folder / "A" / "0.csv").write_bytes(LINES)
    (folder / "A" / "1.csv.gz").write_bytes(LINES)
    with pytest.raises(InputError, match=r"1\.csv\.gz.*on_bad_file"):
        run(folder, "csv", more=HEADER)
    results, (letter,) = run(folder, "csv", more=f'{HEADER}\non_bad_file = "skip"')
    assert results == [ONE]
    assert letter["_file"].endswith("1.csv.gz")
    assert "the file cannot be read" in letter["_reason"]


def test_parquet_that_is_cut_off_is_skipped_where_that_is_said(folder: Path) -> None:
    pq.write_table(PLAIN, folder / "A" / "1.parquet")
    (folder / "A" / "0.parquet").write_bytes((folder / "A" / "1.parquet").read_bytes()[:-9])
    with pytest.raises(InputError, match=r"0\.parquet"):
        run(folder)
    results, (letter,) = run(folder, more='on_bad_file = "skip"')
    assert (results, letter["k"], letter["_file"][-9:]) == ([ONE], None, "0.parquet")


def test_what_a_bad_file_may_do_is_one_of_two() -> None:
    with pytest.raises(LanguageError, match="on_bad_file"):
        files_job(Path("nowhere"), more='on_bad_file = "burn"')
    spec = SourceSpec("parquet", "hdfs://there/in", "k BIGINT", "k", on_bad_file="skip")
    with pytest.raises(InputError, match=r"\[streams.A\].*--engine embedded"):
        source_columns("A", spec, None, embedded=False)


@pytest.mark.parametrize("line", [b"rubbish", b"[1]", b'{"v": "\\ud800"}', b'{"k": 1', b'{"v": "\xe9"', b"\xff"])
def test_lines_that_are_no_json_say_so(folder: Path, line: bytes) -> None:
    (folder / "A" / "0.json").write_bytes(b'\xef\xbb\xbf{"k": 1, "ts": "2024-01-01", "v": "x"}\n' + line + b"\r\n")
    results, (letter,) = run(folder, "json")
    assert results == [ONE]
    assert letter["_reason"] == "the line is not a JSON object"
    assert letter["_corrupt_record"].startswith(line.decode("utf-8", "replace"))


def nested(levels: int, open: str = "[", inner: str = "") -> str:
    return f'{{"k": 1, "ts": "2024-01-01", "v": {open * levels}{inner}{("]" if open == "[" else "}") * levels}}}\n'


@pytest.mark.parametrize(("open", "inner"), [("[", ""), ('{"a": ', "1")])
@pytest.mark.parametrize("kind", ["VARCHAR", "BIGINT[]", "STRUCT(a BIGINT)"])
def test_lines_that_are_nested_too_deep_say_so(folder: Path, kind: str, open: str, inner: str) -> None:
    lines = (nested(levels, open, inner) for levels in (20, 100, 400, 700, 960, 20_000))
    (folder / "A" / "0.json").write_text("".join(lines))
    results, dead = run(folder, "json", f"k BIGINT, ts TIMESTAMP, v {kind}")
    deep = [letter for letter in dead if letter["_reason"] == "the JSON object is nested more than 100 levels deep"]
    assert len(deep) == 5 and len(results) + len(dead) == 6
    assert all(letter["_corrupt_record"].startswith('{"k": 1') for letter in deep)
    assert kind != "VARCHAR" or results == [{"k": 1, "v": nested(20, open, inner)[34:-2]}]


def test_brackets_in_texts_nest_nothing(folder: Path) -> None:
    text = '\\"' + "[{" * 300
    (folder / "A" / "0.json").write_text(f'{{"k": 1, "ts": "2024-01-01", "v": "{text}", "other": [1]}}\nrubbish\n')
    results, (letter,) = run(folder, "json")
    assert results == [{"k": 1, "v": '"' + "[{" * 300}] and letter["_corrupt_record"] == "rubbish"


def test_nested_values_of_json_read_as_text_keep_all_digits(folder: Path) -> None:
    text = '[0.12345678901234567890, 1e400, 1.50, {"\\u00e9\\"": [true, null, -0.0, "1.50"]}]'
    (folder / "A" / "0.json").write_text(f'{{"k": 1, "ts": "2024-01-01", "v": {text}}}\n')
    assert run(folder, "json") == ([{"k": 1, "v": text}], [])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize(("format", "text"), [("csv", "k,ts,v\n1,2024-01-01,x\n"), ("json", nested(0, inner='"x"'))])
def test_texts_in_another_encoding_are_named(folder: Path, format: str, text: str, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    (folder / "A" / "0.txt").write_bytes((mark + text).encode(encoding))
    for more in (HEADER if format == "csv" else "", ""):
        with pytest.raises(InputError, match=rf"is written in UTF-{encoding[4:6]}, .*0\.txt") as refused:
            run(folder, format, more=more)
        assert refused.value.remedy


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_two_columns_of_one_name_are_no_column(folder: Path, format: str) -> None:
    table = pa.table([pa.array([1]), pa.array([T0], pa.timestamp("us")), *[pa.array(["x"])] * 4], [*"ktvwyz"])
    for names, place in ((["k", "ts", "v", "v", "z", "z"], "0"), (["k", "ts", "V", "extra", "z", "z"], "1")):
        file = folder / "A" / f"{place}.{format}"
        if format == "parquet":
            pq.write_table(table.rename_columns(names), file)
        else:
            file.write_text(f"{','.join(names)}\n1,2024-01-01,x,y,z,z\n")
    more = HEADER if format == "csv" else ""
    with pytest.raises(InputError, match=r"two columns 'v'.*0\.") as refused:
        run(folder, format, more=more)
    assert refused.value.remedy
    results, (letter,) = run(folder, format, more=f'{more}\non_bad_file = "skip"')
    assert results == [ONE] and "two columns 'v'" in letter["_reason"]


@pytest.mark.parametrize("header", ["ts,V,k", "extra,K,v,ts", '"v","ts","k"'])
def test_columns_of_csv_are_found_by_the_names_in_its_header(folder: Path, header: str) -> None:
    value = {"ts": "2024-01-01", "v": "x", "k": "1", "extra": "7"}
    names = header.replace('"', "").lower().split(",")
    lines = f"{header}\n{','.join(value[name] for name in names)}\n"
    (folder / "A" / "0.csv").write_text(lines)
    (folder / "A" / "1.csv").write_bytes(LINES)
    assert run(folder, "csv", more=HEADER) == ([ONE] * 2, [])


def test_a_header_that_lacks_a_declared_column_says_so(folder: Path) -> None:
    (folder / "A" / "0.csv").write_text("key,ts,v\n1,2024-01-01,x\n")
    with pytest.raises(InputError, match=r"its header has no 'k', but key, ts, v \(at .*0.csv"):
        run(folder, "csv", more=HEADER)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_of_csv_end_in_any_way(folder: Path, end: str) -> None:
    (folder / "A" / "0.csv").write_bytes(LINES.replace(b"\n", end.encode()) + b"2,2024-01-01,y")
    assert run(folder, "csv", more=HEADER) == ([ONE, {"k": 2, "v": "y"}], [])


def test_a_header_of_megabytes(folder: Path) -> None:
    names = ",".join(f"column_{number}" for number in range(100_000))
    (folder / "A" / "0.csv").write_text(f"k,ts,{names},v\n1,2024-01-01,{',' * 99_999},x\n")
    assert run(folder, "csv", more=HEADER) == ([ONE], [])


def test_a_line_with_more_values_than_the_header_is_a_dead_letter(folder: Path) -> None:
    (folder / "A" / "0.csv").write_bytes(LINES + b"2,2024-01-01,1,5\n3,2024-01-01\n")
    results, (letter,) = run(folder, "csv", more=HEADER)
    assert results == [ONE, {"k": 3, "v": None}]
    assert (letter["k"], letter["_reason"]) == ("2", "the line has 4 values, and the header 3 names")


def test_without_a_header_columns_are_found_by_their_position(folder: Path) -> None:
    (folder / "A" / "0.csv").write_text("1,2024-01-01,x\n")
    (folder / "A" / "1.csv").write_text("\n\n")
    (folder / "A" / "2.csv").write_text("")
    assert run(folder, "csv") == ([ONE], [])


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("dd/MM/yyyy HH:mm", ("01/01/2024 00:00",)),
        ("d.M.yyyy H:mm:ss", ("1.1.2024 0:00:00", "01.01.2024 00:00:00", "2024-01-01")),
        ("yyyy/MM/dd'T'HH:mm:ss.SSSXXX", ("2024/01/01T01:00:00.000+01:00", "2024/01/01T00:00:00.000Z")),
    ],
)
def test_times_of_csv_in_a_pattern_of_their_own(folder: Path, pattern: str, texts: tuple[str, ...]) -> None:
    (folder / "A" / "0.csv").write_text("".join(f"1,{text},x\n" for text in texts))
    more = f'options = {{ timestampFormat = "{pattern}", nullValue = "-" }}'
    assert run(folder, "csv", more=more) == ([ONE] * len(texts), [])


def test_words_of_csv_that_say_null_and_times_that_are_none(folder: Path) -> None:
    (folder / "A" / "0.csv").write_text("1,01/01/2024,x\n2,31/02/2024,-\n3,-,x\n")
    results, letters = run(folder, "csv", more='options = { timestampFormat = "dd/MM/yyyy", nullValue = "-" }')
    assert results == [ONE]
    assert [(one["k"], one["v"]) for one in letters] == [("2", None), ("3", "x")]
    with pytest.raises(InputError, match=r"timestampFormat 'dd MMM yy'.*\[streams.A\]"):
        run(folder, "csv", more='options = { timestampFormat = "dd MMM yy" }')


def test_values_are_apart_at_one_character(folder: Path) -> None:
    (folder / "A" / "0.csv").write_text("1|2024-01-01|x\n")
    assert run(folder, "csv", more='options = { sep = "|" }') == ([ONE], [])
    with pytest.raises(InputError, match=r"one ASCII character.*\[streams.A\]"):
        run(folder, "csv", more='options = { sep = "||" }')


def test_a_job_file_says_how_far_ahead_a_row_may_be(folder: Path) -> None:
    (folder / "A" / "0.csv").write_text("1,2024-01-01,x\n")
    run(folder, "csv", more='max_ahead = "1 day"')
    (folder / "A" / "1.csv").write_text("2,2025-01-01,x\n3,2024-01-02,x\n")
    results, (letter,) = run(folder, "csv", more='max_ahead = "1 day"')
    assert [row["k"] for row in results] == [1, 3]
    assert "ahead by" in letter["_reason"]


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(), st.text(max_size=3), st.just("7"),
    st.sampled_from([9223372036854775808, -0.0, 1e300, "2024-01-01", "NaN", [1], {"a": 1}]),
)  # fmt: skip


@pytest.mark.parametrize("plain", [True, False])
def test_keys_of_json_are_found_in_any_case(folder: Path, plain: bool) -> None:
    """Keys that are written as declared come first; of two others nobody knows which is meant."""
    lines = ['{"K": 1, "TS": "2024-01-01", "v": "x"}'] * 2
    if not plain:
        lines += [
            '{"\\u004b": 1, "ts": "2024-01-01", "v": "x"}',
            '{"K": 7, "k": 2, "ts": "2024-01-01", "V": {"k": 1}}',
            '{"Ts": "2024-01-01", "TS": "2024-01-01", "k": 3}',
            '{"k": 4, "ts": "2024-01-01"}',
        ]
    (folder / "A" / "0.json").write_text("\n".join(lines) + "\n")
    results, letters = run(folder, "json")
    if plain:
        assert (results, letters) == ([ONE] * 2, [])
        return
    assert results == [ONE, ONE, ONE, {"k": 2, "v": '{"k": 1}'}, {"k": 4, "v": None}]
    (letter,) = letters
    assert letter["_reason"] == "its columns 'Ts' and 'TS' differ only by case"
    assert letter["_corrupt_record"] == lines[4]


OBJECTS = st.dictionaries(st.sampled_from(["k", "ts", "v", "d", "b", "m", "K", "TS", "Ts", "other"]), SCALARS)
LINES_OF_JSON = st.one_of(
    OBJECTS.map(json.dumps),
    st.fixed_dictionaries({"k": st.integers(-9, 9), "v": st.text(max_size=3), "d": st.floats(-2, 2)}).map(json.dumps),
    st.sampled_from(
        ["", "{}", " {} ", '{"k": 1} {"k": 2}', '{"k": 1, "k": 2}', '{"k":', "1}", "[]", '{"k": 1e2}', "\ufeff{}"]
    ),
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(LINES_OF_JSON, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_arrow_reads_lines_as_they_are_read_one_by_one(lines: list[str], end: str) -> None:
    columns = parse_ddl("k BIGINT, ts TIMESTAMP, v VARCHAR, d DOUBLE, b BOOLEAN, m DECIMAL(10, 2)")
    data = pa.py_buffer(end.join(lines).encode("utf-8", "surrogatepass"))
    found = _plain_lines(data, columns)
    if found is not None:
        stream = StreamSchema("A", columns, "ts")
        fast, slow = (admit(stream, table) for table in (found, _lines_one_by_one(data, columns)))
        assert str(fast.rows.to_pylist()) == str(slow.rows.to_pylist())
        assert fast.dead["_reason"].to_pylist() == slow.dead["_reason"].to_pylist()


VALUES_OF_JSON = st.one_of(
    LINES_OF_JSON,
    OBJECTS.map(lambda one: json.dumps(one, indent=1)),
    st.text('{}[]",:\n\\ k1', max_size=9),
    st.sampled_from(
        ['{"v": "x}', '{"}', "{{}}", '{"k": 1}{"k": 2}', '{"m": [{}', '{}\n{"k": 3}', '{"k":\n4}', "{} null {}"]
    ),
)


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(st.lists(VALUES_OF_JSON, max_size=4), st.integers(0, 2))
def test_arrow_reads_values_as_they_are_read_one_by_one(values: list[str], skipped: int) -> None:
    columns = parse_ddl("k BIGINT, ts TIMESTAMP, v VARCHAR, d DOUBLE, b BOOLEAN, m DECIMAL(10, 2)")
    given = [one.encode("utf-8", "surrogatepass") for one in values]
    found = json_rows(pa.array(given, pa.large_binary()).slice(skipped), columns)
    stream = StreamSchema("A", columns, "ts")
    slow = _one_by_one(given[skipped:], columns, NO_OBJECT_OF_MESSAGE)
    fast, slow = (admit(stream, table) for table in (found, slow))
    assert str(fast.rows.to_pylist()) == str(slow.rows.to_pylist())
    assert fast.dead["_reason"].to_pylist() == slow.dead["_reason"].to_pylist()


def test_values_of_several_lines_are_read_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are more than Arrow takes together by itself."""
    monkeypatch.setattr(file_formats, "_one_by_one", None)
    columns = parse_ddl("k BIGINT, v VARCHAR")
    rows = [{"k": k, "v": f"value {k}" * 20} for k in range(9_000)]
    values = pa.array([json.dumps(row, indent=2).encode() for row in rows], pa.large_binary())
    assert json_rows(values, columns).to_pylist() == rows


def test_plain_lines_are_read_by_arrow() -> None:
    columns = parse_ddl("k BIGINT, ts TIMESTAMP, v VARCHAR, d DOUBLE, b BOOLEAN, m DECIMAL(10, 2)")
    lines = b'{"k": 1, "ts": "2024-01-01", "d": 1.5, "b": true, "m": "1.25", "more": [1]}\n{"k": null, "d": 2}\n'
    found = _plain_lines(pa.py_buffer(lines), columns)
    assert found is not None
    assert found["k"].to_pylist() == [1, None]


def test_each_line_of_a_csv_file_is_read_by_itself_and_none_vanishes() -> None:
    rng, columns = random.Random(1), pa.schema([("k", pa.string()), ("v", pa.string())])
    for _ in range(3_000):
        text = "".join(rng.choice('"",\nab ') for _ in range(rng.randrange(24)))
        rows = file_rows(
            pa.py_buffer(f"k,v\n{text}".encode()), "a file", "csv", columns, {"header": "true"}
        ).to_pylist()
        lines = [line for line in text.split("\n") if line]
        assert len(rows) == len(lines), text
        found = Counter((plain(row["k"]), plain(row["v"])) for row in rows)
        assert not Counter(row for line in lines if (row := complete(line)) is not None) - found, text


def plain(value: Any) -> str:
    return (value["read"] if isinstance(value, dict) else value) or ""


def complete(line: str) -> tuple[str, str] | None:
    """The values of a line that has both, and no open quote."""
    reader = csv.reader([f"{line}\n", ""])
    first, *others = next(reader)
    return (first, others[0]) if reader.line_num == 1 and len(others) == 1 else None


LONG = {
    "a line": ("2,%,2024-01-01\n", {}, 1),
    "the last line": ("2,%,2024-01-01", {}, 1),
    "a value in quotes": ('2,"%",2024-01-01\n', {}, 1),
    "a value over lines": ('2,"%\n%",2024-01-01\n', {"multiLine": "true"}, 1),
    "a line with a value more": ("2,%,2024-01-01,7\n", {}, 0),
    "a quote amid a value": ('2,a"%"b"c,2024-01-01\n', {}, 1),
    "a quote left open": ('2,"%,2024-01-01\n', {}, 0),
}


@pytest.mark.parametrize("size", [200_000, 3_000_000], ids=["for Python", "for Arrow"])
@pytest.mark.parametrize("case", LONG)
def test_a_long_text_in_csv_costs_no_other_row(folder: Path, case: str, size: int) -> None:
    """Python's reader takes values of 131,072 letters, and Arrow's rows of 1 MB, unless they are asked for more."""
    line, options, good = LONG[case]
    (folder / "A" / "0.csv").write_text("k,v,ts\n1,x,2024-01-01\n" + line.replace("%", "y" * size))
    more = ", ".join(f'{name} = "{value}"' for name, value in {"header": "true", **options}.items())
    limit = csv.field_size_limit()
    results, dead = run(folder, "csv", more=f"options = {{ {more} }}")
    assert results[:1] == [ONE] and len(results) == 1 + good and len(dead) == 1 - good
    assert all(len(row["v"]) >= size for row in results[1:])
    assert csv.field_size_limit() == limit


def test_the_columns_of_a_file_with_a_long_text_are_found() -> None:
    value = b"y" * 3_000_000
    for format, text in ("csv", b"k,n\n1,%b\n" % value), ("json", b'{"k": 1, "n": "%b"}\n' % value):
        assert file_columns(pa.py_buffer(text), f"a.{format}", format, {}).names == ["k", "n"]


def test_check_names_files_that_spark_does_not_find(tmp_path: Path) -> None:
    for name in (b"caf\xe9.json", "café.json".encode()):
        (tmp_path / os.fsdecode(name)).touch()
    (warning,) = folder_warnings("A", SourceSpec("json", str(tmp_path), SCHEMA, "ts"))
    assert rf"1 file in {tmp_path} whose name is not UTF-8: 'caf\udce9.json'" in warning
