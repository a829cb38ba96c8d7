"""`midstream check`: everything that is wrong with a job, at once, before anything starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.cli.main import main
from tests.job_folder import JOB, fill

FAULTS = {
    'format = "json"': ('format = "jsn"', "did you mean 'json'?", "[streams.C]"),
    'path = "in/A"': ('path = "nowhere"', "which does not exist", "[streams.A]"),
    '{ format = "parquet"': ("{ format = []", "unknown format []", "[queries.triples]"),
    "options = { maxFilesPerTrigger = 1 }": (
        "options = { maxFiles = 1 }",
        "option 'maxFiles' of parquet comes from the job file, and this program does not allow it",
        "[streams.A]",
    ),
    "SELECT A.k, A.v": (
        "SELECT A.nothing, A.v",
        "unknown column 'A.nothing'",
        "[queries.triples], sql, line 1, col",
    ),
    'plan = "((A B) C)"': ('plan = "((A B) D)"', "'D'", "[queries.triples]"),
    'format = "parquet", path = "out"': ('format = "cvs", path = "out"', "did you mean 'csv'?", "[queries.triples]"),
    'format = "parquet", path = "out" }': ('type = "files" }', "path", "[queries.triples]"),
    'path = "out" }': ('path = "ckpt/manifests" }', "cannot be in the folder of the checkpoint", "[queries.triples]"),
    "lanes = 2": ("lanes = 5000", "the number of lanes cannot be 5000", "lanes"),
    'checkpoint = "ckpt"': ('checkpoint = "dbfs:/x"', "midstream cannot keep files on dbfs:/", "checkpoint"),
    "lanes = 2\n": ('lanes = 2\nsharing = "some"\n', "unknown sharing 'some'", "sharing"),
    "[queries.triples]": (
        '[spark]\nspark.plugins = "x.Y"\n[queries.triples]',
        "setting 'spark.plugins' of Spark comes from the job file, and this program does not allow it",
        "[spark]",
    ),
    "lanes = 2\n[streams.A]": (
        'lanes = 2\n[tables.a]\nformat = "parquet"\npath = "in/A"\n[streams.A]',
        "there is already a stream 'A'",
        "[tables.a]",
    ),
    'checkpoint = "ckpt"\nlanes = 2\n': (
        'checkpoint = "ckpt"\nlanes = 2\n[tables.names]\nformat = "csv"\npath = "data/names.csv"\n',
        "table 'names' reads data/names.csv, which does not exist",
        "[tables.names]",
    ),
    "WINDOW 20 SECONDS": ("WINDOW 20 SECNDS", "SECNDS", "[queries.triples]"),
    'sink = { format = "parquet"': (
        'optimizer = { mode = "sometimes" }\nsink = { format = "parquet"',
        "unknown mode 'sometimes'",
        "[queries.triples], optimizer, [queries.triples.optimizer]",
    ),
}
DECLARED = 'schema = "k BIGINT, ts TIMESTAMP, v DOUBLE"\n'
NAMED = 'options = { header = "true" }\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill(tmp_path, files=1)
    monkeypatch.chdir(tmp_path)
    write(tmp_path, JOB)
    return tmp_path


def write(folder: Path, text: str) -> None:
    """The job file, with the columns of its CSV stream declared, and a lateness where files come one by one."""
    text = re.sub(r"(?m)^options = \{ maxFilesPerTrigger = 1.*$", r'\g<0>\nlateness = "1 second"', text)
    (folder / "job.toml").write_text(text.replace('path = "in/B"\n', f'path = "in/B"\n{DECLARED}{NAMED}'))


def found(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["check", "job.toml", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("engine", ["spark", "embedded"])
def test_nothing_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str], engine: str) -> None:
    if engine == "embedded":
        write(folder, JOB)
    assert main(["check", "job.toml", "--engine", engine]) == 0
    assert capsys.readouterr().out == "job.toml: no fault found in 3 streams and 1 query\n"
    assert not (folder / "ckpt").exists() and not (folder / "out").exists(), "nothing is written"


def test_names_that_are_read_as_a_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = (folder / "job.toml").read_text().replace(NAMED, "")
    (folder / "job.toml").write_text(job)
    first = folder / "in" / "B" / "0.csv"
    first.write_text(' "TS",v , k\n')
    code, told = found(capsys=capsys)
    (warning,) = told["warnings"]
    assert code == 0 and "stream B reads the names in the first line of" in warning and "0.csv" in warning
    first.write_text("ts,v,x\n")
    (warning,) = found(capsys=capsys)[1]["warnings"]
    assert "1 of the first 1 row in in/B/0.csv" in warning and "column 'k': cannot read 'ts' as int64" in warning
    first.unlink()
    first.symlink_to("/proc/self/mem")  # It cannot be read.
    assert found(capsys=capsys)[0] in (0, 2), "a message, and no traceback"


@pytest.mark.parametrize("old", FAULTS)
def test_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str], old: str) -> None:
    new, message, place = FAULTS[old]
    write(folder, JOB.replace(old, new))
    code, told = found(capsys=capsys)
    assert code == main(["check", "job.toml"]) == 2
    capsys.readouterr()
    (fault,) = told["faults"]
    assert message in f"{fault['message']} {fault['remedy']}" and place in fault["place"] and fault["remedy"]
    assert "line " in fault["place"] and fault["place"].startswith("job.toml")


def test_all_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = JOB
    for old in ('path = "in/A"', "SELECT A.k, A.v", "lanes = 2"):
        text = text.replace(old, FAULTS[old][0])
    more = '[queries.others]\nsql = "SELECT C.x FROM C"\nsink = { path = "other" }\n'
    write(folder, text.replace('path = "nowhere"', f'path = "nowhere"\n{DECLARED}') + more)
    _, told = found(capsys=capsys)
    places = [fault["place"].split(", ")[2] for fault in told["faults"]]
    assert places == ["lanes", "[streams.A]", "[queries.others]"], "nor what reads a wrong stream"
    assert main(["check", "job.toml"]) == 2
    assert capsys.readouterr().err.startswith(
        "midstream: the job file has 3 faults:\n  1. the number of lanes cannot be 5000"
    )


MANY_FAULTS = """checkpoint = "ckpt"
lanes = 5000
sharing = "some"
[spark]
spark.plugins = "x.Y"
spark.jars = "y.jar"
[optimizer]
mode = "sometimes"
review = "1 fortnight"
[streams.A]
format = "parquet"
path = "nowhere"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
options = { maxFiles = 1, maxBites = 2 }
[streams.B]
format = "csv"
path = "in/B"
schema = "k BIGNT, ts TIMESTAMP"
timestmp = "ts"
lateness = "5 snds"
[streams.C]
format = "parquet"
path = "in/A"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
[queries.one]
sql = "SELECT C.nothing FROM C"
plan = 3
[queries.two]
sql = "SELECT C.nothing FROM C"
optimizer = { mode = "never" }
sink = { format = "cvs", path = "out" }
[queries.three]
sql = "SELECT C.k FROM C"
plan = "(C D)"
sink = { path = "${NOT_SET}" }
[queries.four]
sql = "SELECT C.k FROM C"
plan = "(C D)"
sink = { path = "ckpt/manifests" }
[queries.five]
sql = "SELECT A.k, B.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND"
sink = { path = "five" }
colour = "red"
"""


@pytest.mark.parametrize("engine", ["spark", "embedded"])
def test_every_fault_of_every_table_at_once_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    (folder / "job.toml").write_text(MANY_FAULTS)
    _, told = found("--engine", engine, capsys=capsys)
    lines = [int(re.findall(r"line (\d+)", fault["place"])[0]) for fault in told["faults"]]
    # Of nowhere the embedded engine waits for files.
    nowhere = [12] if engine == "spark" else []
    assert lines == [2, 3, 5, 6, 8, 9, *nowhere, 15, 15, 19, 20, 21, 27, 28, 29, 31, 32, 33, 36, 37, 40, 41, 45]


def test_all_that_is_wrong_with_one_query(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = JOB
    for old in ("SELECT A.k, A.v", 'format = "parquet", path = "out"'):
        text = text.replace(old, FAULTS[old][0])
    write(folder, text.replace("sink = {", 'optimizer = { mode = "sometimes" }\nsink = {'))
    _, told = found(capsys=capsys)
    messages = [fault["message"] for fault in told["faults"]]
    assert [message.split("'")[0] for message in messages] == ["unknown column ", "unknown mode ", "unknown format "]


TEXTS = {
    "SELECT A.k, A.nope,\n B.x FROM A, B WHERE A.k = B.kk AND A.ts BETWEEN B.tz AND B.ts": [
        ("unknown column 'B.kk'", "line 2, column 28"),
        ("unknown column 'B.tz'", "line 2, column 50"),
        ("unknown column 'A.nope'", "line 1, column 13"),
        ("unknown column 'B.x'", "line 2, column 2"),
    ],
    "SELECT upper(k), foo(k), CAST(k AS NOPE), bar(v)\nFROM A WHERE nope > 2 OR nope = 3": [
        ("unknown column 'nope'", "line 2, column 14"),
        ("unknown column 'nope'", "line 2, column 26"),
        ("'UPPER': a text function cannot take a BIGINT", "line 1, column 8"),
        ("unknown function 'FOO'", "line 1, column 18"),
        ("unknown type NOPE", "line 1, column 26"),
        ("unknown function 'BAR'", "line 1, column 43"),
    ],
    "SELECT k FROM (SELECT kk FROM A WHERE vv > 2) x WHERE zz = 1": [
        ("unknown column 'vv'", "line 1, column 39"),
        ("unknown column 'kk'", "line 1, column 23"),
        ("unknown column 'zz'", "line 1, column 55"),
        ("unknown column 'k'", "line 1, column 8"),
    ],
    "SELECT COUNT(*) AS n, nope FROM A GROUP BY k, nope2 EVERY 1 SECOND": [
        ("stream 'A' has no window", "line 1, column 33"),
        ("unknown column 'nope2'", "line 1, column 47"),
        ("unknown column 'nope'", "line 1, column 23"),
    ],
    "SELECT k FROM nowhere WHERE nope = 2": [("unknown stream 'nowhere'", "line 1, column 15")],
    "SELECT A.nope, D.k FROM A, D WHERE A.k = D.k AND A.v = E.v AND foo(A.k)\nWINDOW 1 SECOND": [
        ("unknown stream 'D'", "line 1, column 28"),
        ("unknown function 'FOO'", "line 1, column 64"),
        ("unknown column 'A.nope'", "line 1, column 8"),
    ],
    "SELECT A.k + 'x', A.v + 'y' FROM A, B WHERE A.k = B.kk AND A.k = 'z' AND A.v = 'z' WINDOW 3 SECNDS": [
        ("WINDOW has an unknown unit 'SECNDS'", "line 1, column 91"),
        ("unknown column 'B.kk'", "line 1, column 51"),
        ("'=': BIGINT and VARCHAR cannot be compared or combined", "line 1, column 60"),
        ("'=': DOUBLE and VARCHAR cannot be compared or combined", "line 1, column 74"),
        ("'+': arithmetic cannot take a VARCHAR", "line 1, column 8"),
        ("'+': arithmetic cannot take a VARCHAR", "line 1, column 19"),
    ],
    "SELECT SUM(A.v), MAX(A.vv) FROM A [RANGE 1 SECOND] GROUP BY A.kk ORDER BY A.k LIMIT 3": [
        ("LIMIT is not part of the language", "line 1, column 85"),
        ("ORDER BY is not part of the language", "line 1, column 75"),
        ("aggregates over a stream need EVERY", "line 1, column 61"),
        ("unknown column 'A.kk'", "line 1, column 61"),
        ("unknown column 'A.vv'", "line 1, column 22"),
    ],
    "SELECT A.k FROM A JOIN B USING (nope) WHERE A.k = B.k WINDOW 1 SECOND": [
        ("USING names column 'nope', which the sources before lacks", "line 1, column 33"),
    ],
}


@pytest.mark.parametrize("sql", TEXTS)
def test_every_fault_of_one_text_at_once(folder: Path, capsys: pytest.CaptureFixture[str], sql: str) -> None:
    write(folder, f'{JOB.partition("[queries")[0]}[queries.q]\nsql = """{sql}"""\nsink = {{ path = "out" }}\n')
    _, told = found(capsys=capsys)
    places = [(fault["message"], ", ".join(fault["place"].split(", ")[-2:])) for fault in told["faults"]]
    assert places == TEXTS[sql]


PARTS = {
    'plan = "((A X) (B Y))"': [("unknown source 'X'", "column 5"), ("unknown source 'Y'", "column 11")],
    'plan = "[A: B X | B: A A C | D: A B]"': [
        ("unknown source 'X'", "column 7"),
        ("A is probed twice by B", "column 16"),
        ("unknown source 'D'", "column 22"),
    ],
    'plan = "eddy:best(A B B)"': [
        ("an eddy cannot route by 'best'", "column 6"),
        ("B is named twice", "column 15"),
    ],
    'plan = "eddy:best(A B)"': [
        ("an eddy cannot route by 'best'", "column 6"),
        ("the plan lacks C", "column 15"),
    ],
    'spread = "ctr"\nnodes = 0\nspread_options = { a = 1, b = 2 }': [
        ("the number of nodes cannot be 0", "nodes"),
        ("ctr has no option 'a'", "spread_options"),
        ("ctr has no option 'b'", "spread_options"),
    ],
    'spread = "cttr"\nnodes = 0': [("unknown spread 'cttr'", "spread"), ("the number of nodes cannot be 0", "nodes")],
    'sink = { format = "xls", path = "out", colour = 1 }': [
        ("unknown sink option 'colour'", "sink"),
        ("unknown format 'xls'", "sink"),
    ],
    'sink = { type = "kafka", colour = 1, size = 2 }': [
        ("the sink 'kafka' cannot be made: it has no option 'colour'", "sink"),
        ("the sink 'kafka' cannot be made: it has no option 'size'", "sink"),
        ("the sink 'kafka' cannot be made: it needs the option 'topic'", "sink"),
    ],
}


@pytest.mark.parametrize("is_wrong", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_every_fault_of_a_plan_a_spread_and_a_sink(
    folder: Path, capsys: pytest.CaptureFixture[str], part: str, is_wrong: bool
) -> None:
    job = re.sub(r"(?m)^plan = .*\n", "", JOB)
    job = re.sub(r"(?m)^sink = .*\n", "" if "sink" in part else r"\g<0>", job) + f"\n{part}\n"
    write(folder, job.replace("SELECT A.k, A.v", "SELECT A.nothing, A.v") if is_wrong else job)
    _, told = found(capsys=capsys)
    faults = [(fault["message"], fault["place"]) for fault in told["faults"] if "column 'A.n" not in fault["message"]]
    if is_wrong and "spread" in part:  # A spread depends on the query; names in a plan need only its sources.
        assert faults == []
    else:
        assert [message for message, _ in faults] == [message for message, _ in PARTS[part]]
        assert all(place in told for (_, told), (_, place) in zip(faults, PARTS[part], strict=True))


def test_every_fault_of_a_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, JOB)
    text = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text(text.replace(DECLARED, 'schema = "k BIGNT, ts TIMESTAMP, v DUBLE, TS DATE"\n', 1))
    _, told = found(capsys=capsys)
    places = [(fault["message"], fault["place"].partition("schema, ")[2]) for fault in told["faults"]]
    assert places == [
        ("unknown type BIGNT", "line 1, column 1"),
        ("unknown type DUBLE", "line 1, column 24"),
        ("column 'TS' is declared twice", "line 1, column 33"),
    ]


FILES = """checkpoint = "ckpt"
[streams.A]
format = "csv"
path = "in/own"
timestamp = "at"
{more}
[queries.q]
sql = "SELECT id, amount FROM A"
sink = {{ path = "out", format = "csv" }}
"""
DAYS = "options = { timestampFormat = 'dd/MM/yyyy HH:mm' }"
ROWS_OF_FILES = {
    "times of another form": (
        "id,amount,at\n1,2.5,01/02/2026 10:00\n",
        "",
        "Set the form of times, such as options",
    ),
    "a decimal comma": (
        'id,amount,at\n1,"2,5",2026-02-01\n',
        'schema = "id BIGINT, amount DOUBLE, at TIMESTAMP"\noptions = { header = "true" }',
        "Declare a VARCHAR, and convert it in SQL",
    ),
    "a value over two lines": ('id,amount,at\n1,"2\n5",2026-02-01\n', "", 'multiLine = "true" reads values'),
    "no column": ("id,at\n1,2026-02-01\n", 'schema = "id BIGINT, amount DOUBLE, at TIMESTAMP"', "has no 'amount'"),
    "nothing": ("id,amount,at\n1,2.5,01/02/2026 10:00\n", DAYS, ""),
    "two lines": ('id,amount,at\n1,"2\n5",2026-02-01\n', 'options = { multiLine = "true" }', ""),
}


@pytest.mark.parametrize("case", ROWS_OF_FILES)
def test_first_rows_that_cannot_be_read_are_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    text, more, said = ROWS_OF_FILES[case]
    own = folder / "in" / "own"
    own.mkdir()
    (own / "0.csv").write_text("")  # It comes first, and has no columns.
    os.utime(own / "0.csv", (0, 0))
    (own / "1.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    if "schema" in more and "header" not in more:
        more += '\noptions = { header = "true" }'
    (folder / "job.toml").write_text(FILES.format(more=more))
    code, told = found("--engine", "embedded", capsys=capsys)
    assert (code, told["faults"]) == (0, [])
    assert [said in one and "own/1.csv" in one for one in told["warnings"]] == [True] * (said != "")
    if not said:
        assert main(["run", "job.toml", "--engine", "embedded", "--once"]) == 0
        assert "dead" not in capsys.readouterr().out
        rows = [file.read_text() for file in (folder / "out").rglob("*.csv")]
        assert len(rows) == 1 and "id" in rows[0]


def test_columns_that_cannot_be_found_are_to_be_declared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = folder / "in" / "own"
    own.mkdir()
    (folder / "job.toml").write_text(FILES.format(more="").replace("csv", "json"))
    for text, said in (
        ("", "all files in the folder are empty"),
        ('{"id": 1}\n{"id": "2"}\n', "changed from number to string"),
    ):
        (own / "1.json").write_text(text)
        (fault,) = found("--engine", "embedded", capsys=capsys)[1]["faults"]
        assert said in fault["message"] and "declare the columns: schema =" in fault["remedy"]


def test_a_separator_that_is_not_declared_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = folder / "in" / "own"
    own.mkdir()
    (own / "1.CSV").write_text("id;amount;at\n1;x;2026-02-01\n")
    (folder / "job.toml").write_text(FILES.format(more=""))
    (fault,) = found("--engine", "embedded", capsys=capsys)[1]["faults"]
    assert """if ';' separates its columns, say options = { sep = ";" }""" in fault["message"]
    schema = "schema = 'id BIGINT, amount DOUBLE, at TIMESTAMP'"
    (folder / "job.toml").write_text(FILES.format(more=f'{schema}\noptions = {{ sep = ";", header = "true" }}'))
    (warning,) = found("--engine", "embedded", capsys=capsys)[1]["warnings"]
    assert "1 of the first 1 row in" in warning and "1.CSV: column 'amount': cannot read 'x'" in warning


def test_a_file_that_changed_after_it_was_read_is_warned_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = folder / "in" / "own"
    own.mkdir()
    (own / "1.csv").write_text("id,amount,at\n1,2.5,2026-02-01\n")
    (folder / "job.toml").write_text(FILES.format(more=""))
    assert main(["run", "job.toml", "--engine", "embedded", "--once"]) == 0
    capsys.readouterr()
    assert found("--engine", "embedded", capsys=capsys)[1]["warnings"] == []
    with (own / "1.csv").open("a") as file:
        file.write("2,2.5,2026-02-01\n")
    (warning,) = found("--engine", "embedded", capsys=capsys)[1]["warnings"]
    assert "does not read again 1 file that changed after a step read it" in warning
    assert "own/1.csv (step 0). Write new rows to a new file" in warning
    assert main(["doctor", "ckpt", "--json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["check"] == "files" and finding["place"].endswith("own/1.csv")


def test_a_query_over_a_faulty_one_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[queries.above]\nsql = "SELECT k FROM triples WHERE nope = 1"\nsink = { path = "other" }\n'
    write(folder, JOB.replace("SELECT A.k, A.v", "SELECT A.nothing, A.v") + more)
    assert main(["check", "job.toml"]) == 2
    assert "not checked: above. Mend the streams and queries that it reads" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["gone/../names.csv", "names.csv/", "file:names.csv", "nam?s.csv"])
def test_a_tables_file_is_looked_for_where_it_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    (folder / "names.csv").write_text("k,name\n1,a\n")
    write(folder, f'{JOB}\n[tables.names]\nformat = "csv"\npath = "{path}"\n')
    assert found(capsys=capsys)[1]["faults"] == []


def test_a_tables_path_that_is_none_is_told_as_such(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, f'{JOB}\n[tables.names]\nformat = "csv"\npath = "a\\u0000b"\n')
    (fault,) = found(capsys=capsys)[1]["faults"]
    assert fault["message"] == "the path has a character 0 in it"


def test_an_operator_that_is_not_allowed_is_not_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "hostile.py").write_text("from pathlib import Path\nPath('was_here').touch()\nclass Evil: ...\n")
    write(folder, JOB.replace("sink = {", 'operator = "hostile:Evil"\nsink = {'))
    sys.path.insert(0, str(folder))
    try:
        _, told = found(capsys=capsys)
    finally:
        sys.path.remove(str(folder))
    assert len(told["faults"]) == 1 and "hostile:Evil" in told["faults"][0]["remedy"]
    assert not (folder / "was_here").exists()


def test_faults_of_the_file_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, JOB.replace("plan =", "plann =").replace("lateness", "latenes"))
    _, told = found(capsys=capsys)
    assert [fault["place"] for fault in told["faults"]] == [
        "job.toml, line 21, [streams.C], latenes",
        "job.toml, line 24, [queries.triples], plann",
    ]
    (folder / "job.toml").write_text("checkpoint = ")
    _, told = found(capsys=capsys)
    assert told["faults"][0]["message"].startswith("the job file is not TOML")


def test_what_only_spark_can_tell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.toml").write_text(JOB)
    assert main(["check", "job.toml"]) == 0
    assert "not checked: triples, because only Spark can read the columns of B" in capsys.readouterr().out


ELSEWHERE = {
    "a pattern with braces": ('path = "in/{A,B}"', ""),
    "Hadoop's": ('path = "hdfs://name/in/A"', ""),
    "a bucket": ('path = "s3a://bucket/in/A"', ""),
    "mounted by Databricks": ('path = "dbfs:/in/A"', ""),
    "an option": ('path = "in/A"', ", mergeSchema = true"),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_what_only_spark_can_read_is_no_fault(folder: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    path, option = ELSEWHERE[case]
    one = "maxFilesPerTrigger = 1"
    write(folder, JOB.replace('path = "in/A"', path).replace(one, f"{one}{option}"))
    told = {"faults": [], "warnings": [], "streams": ["A", "B", "C"], "queries": ["triples"]}
    assert found(capsys=capsys) == (0, told | {"not_looked_into": ["triples"]})


def test_folders_of_partitions_are_no_fault(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = (folder / "in" / "A").iterdir()
    (folder / "in" / "A" / "day=1").mkdir()
    file.rename(folder / "in" / "A" / "day=1" / file.name)
    code, told = found(capsys=capsys)
    assert (code, told["not_looked_into"]) == (0, ["triples"])


def test_a_path_may_be_on_the_file_system_of_hadoops_settings(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, JOB.replace('path = "in/A"', 'path = "/on/hdfs"'))
    assert found(capsys=capsys)[0] == 2
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")
    assert found(capsys=capsys)[0] == 0
    write(folder, JOB.replace('path = "in/A"', 'path = "file:/on/hdfs"'))
    assert found(capsys=capsys)[0] == 2


def test_files_that_were_read_may_be_gone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, JOB)
    assert main(["run", "job.toml", "--once", "--engine", "embedded"]) == 0
    for file in (folder / "in" / "A").iterdir():
        file.unlink()
    capsys.readouterr()
    code, told = found("--engine", "embedded", capsys=capsys)
    assert (code, told["faults"]) == (0, [])


def test_a_folder_that_is_missing_is_told_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.toml").write_text((folder / "job.toml").read_text().replace("in/B", "in/mistyped"))
    code, told = found("--engine", "embedded", capsys=capsys)
    assert code == 0 and any("stream B reads in/mistyped, which is not there yet" in one for one in told["warnings"])


def test_a_first_step_that_failed_is_told_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, JOB)
    (folder / "in" / "B" / "0.csv").write_text("ts,v\n1,2\n")
    assert main(["run", "job.toml", "--once", "--engine", "embedded"]) != 0
    assert main(["status", "ckpt"]) == 1
    told = capsys.readouterr().err
    assert "has not finished a step yet: failed" in told and "start the job again" in told


def test_options_of_spark_for_results_of_another_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, JOB.replace("SELECT A.k", "SELECT A.ts AS at, A.k"))
    assert main(["run", "job.toml", "--once", "--engine", "embedded"]) == 0
    capsys.readouterr()
    options = 'options = { query = "triples", latestFirst = "true" }'
    (folder / "job.toml").write_text(
        f'checkpoint = "next"\n[streams.T]\nformat = "midstream"\npath = "ckpt"\ntimestamp = "at"\n{options}\n'
        '[queries.all]\nsql = "SELECT T.k FROM T"\nsink = { path = "all" }\n'
    )
    code, told = found(capsys=capsys)
    assert (code, told["faults"]) == (0, [])
    (folder / "job.toml").write_text((folder / "job.toml").read_text().replace("latestFirst", "latest"))
    assert found(capsys=capsys)[0] == 2


def test_a_checkpoint_of_another_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ms.Engine(checkpoint=folder / "ckpt") as engine:
        engine.create_stream("other", "ts TIMESTAMP", timestamp="ts")
        engine.push({})
    _, told = found("--engine", "embedded", capsys=capsys)
    assert "the checkpoint has the streams other, but this job declares A, B, C" in told["faults"][0]["message"]
    _, told = found(capsys=capsys)
    assert "the checkpoint has the streams other" in told["faults"][0]["message"], "by the engine of the checkpoint"
    _, told = found("--engine", "spark", capsys=capsys)
    assert "the checkpoint belongs to an embedded engine" in told["faults"][0]["message"]
    assert "run it with --engine embedded" in told["faults"][0]["remedy"]


def test_what_is_allowed_is_no_fault(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, JOB.replace("[queries.triples]", '[spark]\nspark.plugins = "x.Y"\n[queries.triples]'))
    program = "import sys; from midstream.cli.main import main; sys.exit(main(sys.argv[1:]))"
    allowed = [sys.executable, "-c", program, "check", "job.toml", "--allow-source", "spark:spark.plugins"]
    assert subprocess.run(allowed, check=False, capture_output=True, env=paths()).returncode == 0


def paths() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))}


def test_run_tells_the_same_before_it_starts_spark(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, JOB.replace("SELECT A.k", "SELECT A.nothing"))
    assert main(["run", "job.toml", "--once"]) == 2
    assert "[queries.triples], sql, line 1, column 8" in capsys.readouterr().err
    assert not (folder / "ckpt").exists(), "Spark's log would be there"


KAFKA = """checkpoint = "ckpt"
[streams.A]
format = "kafka"
value = "json"
schema = "k BIGINT, ts TIMESTAMP, kafka_key VARCHAR"
timestamp = "ts"
options = { "kafka.bootstrap.servers" = "kafka:9092", subscribe = "a" }
[queries.all]
sql = "SELECT A.k, A.kafka_key FROM A"
sink = { path = "out" }
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("subscribe =", "subscribePattern =", ""),
        (', subscribe = "a"', "", "a stream must read one topic, not none"),
        ('"kafka.bootstrap.servers" = "kafka:9092", ', "", "no setting says where Kafka is"),
        ('"kafka.bootstrap.servers" = "kafka:9092", subscribe', "subscribePattern", "does not say where Kafka is"),
        ("kafka_key VARCHAR", "kafka_keys VARCHAR", "schema has 'kafka_keys', which is not a column of Kafka messages"),
    ],
)
def test_what_is_read_of_kafka(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    (folder / "job.toml").write_text(KAFKA.replace(old, new))
    _, told = found(capsys=capsys)
    faults = [fault["message"] for fault in told["faults"]]
    assert len(faults) == bool(message) and all(message in one for one in faults)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lanes = 2", "lanes = 3", ""),
        ("k BIGINT", "k VARCHAR", "column 'k' of stream 'C' cannot change from int64 to string"),
        (
            'timestamp = "ts"\nlateness',
            'timestamp = "k"\nunit = "s"\nlateness',
            "stream 'C' cannot change its timestamp column from 'ts' to 'k'",
        ),
    ],
)
def test_a_stream_that_a_checkpoint_has_otherwise(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    (folder / "job.toml").write_text(JOB)
    assert main(["run", "job.toml", "--engine", "embedded", "--once", "--json"]) == 0
    capsys.readouterr()
    (folder / "job.toml").write_text(JOB.replace(old, new))
    _, told = found("--engine", "embedded", capsys=capsys)
    messages = [fault["message"] for fault in told["faults"]]
    assert messages[:1] == [message] * bool(message)


def test_a_number_of_cores(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "job.toml", "--once", "--cores", "many"]) == 2
    assert "'many' is not a number of cores" in capsys.readouterr().err
    assert not (folder / "ckpt").exists(), "Spark's log would be there"


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("s3n://b/x", "write it as s3://BUCKET/..."),
        ("dbfs:/x", "write it as it is mounted: /dbfs/..."),
        ("dbfs://x", "write it as it is mounted: /dbfs/..."),
        ("/data/${CKPT}", "os.environ"),
        ("hdfs://name/x", "a URL of s3://, gs:// or abfs://"),
    ],
)
def test_a_place_that_would_become_a_folder_of_that_name(tmp_path: Path, place: str, remedy: str) -> None:
    with pytest.raises(ms.SinkError, match=r"keep files on|the path contains a variable") as raised:
        ms.Engine(checkpoint=place)
    assert remedy in str(raised.value.remedy)
