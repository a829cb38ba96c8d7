"""Job files: variables of the environment, files that are included, settings of Spark, lines, all faults at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.model.errors import LanguageError
from midstream.sql.job_file import JobFileError, parse_job, read_job_file
from midstream.sql.toml_file import key_lines

STREAM = '[streams.A]\nformat = "json"\npath = "in"\ntimestamp = "ts"\n'
QUERY = '[queries.all]\nsql = "SELECT A.k FROM A"\nsink = { path = "out" }\n'


def test_variables_of_the_environment() -> None:
    text = 'checkpoint = "${ROOT}/ckpt"\n' + STREAM.replace("in", "${FROM:-in}/$$1") + QUERY
    job = parse_job(text, environ={"ROOT": "/data"})
    assert (job.checkpoint, job.streams["A"].path) == ("/data/ckpt", "in/$1")
    assert parse_job(text, environ={"ROOT": "", "FROM": "x"}).streams["A"].path == "x/$1"


def test_a_variable_that_is_not_set() -> None:
    with pytest.raises(LanguageError, match="the environment has no variable WHERE") as raised:
        parse_job('checkpoint = "c"\n' + STREAM + QUERY.replace('"out"', '"${WHERE}"'))
    assert raised.value.place == "job file, line 8, queries.all.sink.path"
    assert "${WHERE:-...}" in str(raised.value.remedy)


def test_a_value_cannot_become_toml() -> None:
    job = parse_job('checkpoint = "${C}"\n' + STREAM, environ={"C": 'x"\n[queries.evil]\nsql = "'})
    assert not job.queries and job.checkpoint.startswith('x"')


def test_files_that_are_included(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "job.toml").write_text('include = ["more/streams.toml", "queries.toml"]\ncheckpoint = "c"\n')
    (tmp_path / "more" / "streams.toml").write_text('include = ["../job.toml"]\n' + STREAM)
    (tmp_path / "queries.toml").write_text(f"lanes = 3\n{QUERY}")
    job = read_job_file(tmp_path / "job.toml")
    assert (list(job.streams), list(job.queries), job.lanes) == (["A"], ["all"], 3)
    assert job.places["queries.all"] == f"{tmp_path / 'queries.toml'}, line 2, [queries.all]"


def test_every_key_that_is_a_path_counts_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "job.toml").write_text('include = ["more/all.toml"]\ncheckpoint = "ckpt"\n')
    text = """
        [streams.A]
        format = "json"
        timestamp = "ts"
        path = "../in/A*"
        dead_letters = { type = "delta", path = "dead" }
        [tables.t]
        format = "csv"
        path = "t.csv"
        [queries.q]
        sql = "SELECT k FROM A"
        sink = { path = "out" }
        optimizer = { calibration = "of_q.json" }
        [optimizer]
        calibration = "units.json"
        """
    (tmp_path / "more" / "all.toml").write_text(text)
    job = read_job_file(tmp_path / "job.toml")
    a, t, sink = job.streams["A"], job.tables["t"], job.queries["q"].sink
    assert sink is not None and a.dead_letters is not None and job.optimizer is not None
    found = [job.checkpoint, a.path, t.path, sink["path"], a.dead_letters["path"]]
    found += [settings["calibration"] for settings in (job.optimizers["q"], job.optimizer)]
    inner = ["../in/A*", "t.csv", "out", "dead", "of_q.json", "units.json"]
    assert found == [str(tmp_path / "ckpt"), *(f"{tmp_path}/more/{name}" for name in inner)]
    (tmp_path / "more" / "all.toml").write_text(text.replace('= "', '= "s3://b/').replace("s3://b/ts", "ts"))
    assert read_job_file(tmp_path / "job.toml").streams["A"].path == "s3://b/../in/A*"


def test_what_two_files_say(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(f'include = ["b.toml"]\ncheckpoint = "c"\n{STREAM}')
    (tmp_path / "b.toml").write_text(f'checkpoint = "d"\n{STREAM}')
    with pytest.raises(JobFileError) as raised:
        read_job_file(tmp_path / "job.toml")
    assert [fault.message for fault in raised.value.faults] == [
        f"checkpoint is already in {tmp_path / 'job.toml'}, line 2, checkpoint",
        f"A is already in {tmp_path / 'job.toml'}, line 3, [streams.A]",
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text('include = ["b.toml"]\n')
    with pytest.raises(LanguageError, match="the job file cannot be read: No such file") as raised:
        read_job_file(tmp_path / "job.toml")
    assert raised.value.place == f"{tmp_path / 'b.toml'}, which {tmp_path / 'job.toml'} includes"


@pytest.mark.parametrize("include", ['"b.toml"', "[3]"])
def test_no_list_of_files(tmp_path: Path, include: str) -> None:
    (tmp_path / "job.toml").write_text(f"include = {include}\n")
    with pytest.raises(LanguageError, match="include"):
        read_job_file(tmp_path / "job.toml")


def test_a_text_includes_nothing() -> None:
    with pytest.raises(LanguageError, match="include names files, but this job"):
        parse_job('include = ["b.toml"]\n')


def test_settings_of_spark() -> None:
    spark = """[spark]
packages = ["org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0", "a:b:1"]
"spark.executor.memory" = "4g"
spark.sql.shuffle.partitions = 7
spark.ui.enabled = false
"""
    assert parse_job('checkpoint = "c"\n' + STREAM + spark).spark == {
        "spark.executor.memory": "4g",
        "spark.sql.shuffle.partitions": "7",
        "spark.ui.enabled": "false",
        "spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0,a:b:1",
    }


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('packages = "a:b:1"', "spark.packages is 'a:b:1'"),
        ('memory = "4g"', "spark.memory is not a setting of Spark"),
        ("spark.x = [1]", "spark cannot set spark.x to [1]"),
    ],
)
def test_no_settings_of_spark(setting: str, message: str) -> None:
    with pytest.raises(LanguageError) as raised:
        parse_job(f'checkpoint = "c"\n{STREAM}[spark]\n{setting}\n')
    assert raised.value.message == message


def test_all_faults_at_once_each_with_its_line() -> None:
    text = 'checkpoint = "c"\nlanes = 0\n' + STREAM.replace("timestamp", "timstamp") + QUERY.replace("sink", "sinks")
    with pytest.raises(JobFileError) as raised:
        parse_job(text, "job.toml")
    assert [fault.place for fault in raised.value.faults] == [
        "job.toml, line 2, lanes",
        "job.toml, line 6, [streams.A], timstamp",
        "job.toml, line 9, [queries.all], sinks",
    ]
    assert str(raised.value).startswith("the job file has 3 faults:\n  1. lanes is less than 1 (at job.toml, line 2,")


def test_lines_of_keys_pass_over_long_texts() -> None:
    text = 'sql = """\nnot.a.key = 1\n[no.table]\n"""\n[t]\n  "a b".c = [\n 1 ]\n# x = 1\n[[list]]\nd = 1\n'
    assert key_lines(text) == {
        ("sql",): 1,
        ("t",): 5,
        ("t", "a b", "c"): 6,
        ("list",): 9,
        ("list", "d"): 10,
    }
