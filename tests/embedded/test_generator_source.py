"""The stream generator as a source: fixed by its seed, in steps that a restart and a kill continue exactly."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.embedded.generator_source import GeneratorSource
from midstream.model.errors import MidstreamError
from midstream.sql.job_specs import SourceSpec
from tests.forked import run

SCHEMA = "k BIGINT, name VARCHAR, ts TIMESTAMP"
OPTIONS: Mapping[str, Any] = {
    "seed": 7,
    "rate": "20; 60 from 2 seconds; 0 from 4 seconds; 30 from 5 seconds",
    "k.selectivity": "0.1; 0.01 from 3 seconds",
    "k.skew": "0; 1.5 from 3 seconds",
    "name.values": 3,
    "until": "6.5 seconds",
}


def source(schema: str | None = SCHEMA, **options: Any) -> GeneratorSource:
    """The source of these options; None leaves one out."""
    given = {key.replace("_", "."): one for key, one in options.items()}
    told = {key: str(one) for key, one in {**OPTIONS, **given}.items() if one is not None}
    return GeneratorSource.of("A", SourceSpec("generator", None, schema, "ts", options=told))


def all_of(found: GeneratorSource) -> list[pa.Table]:
    """Every piece, as an engine reads them."""
    tables, read = list[pa.Table](), set[str]()
    while pieces := found.waiting(read):
        tables.append(found.read(pieces))
        read = read - found.forgettable(dict.fromkeys(read, 1), ()) | set(pieces)
    return tables


def seconds(table: pa.Table) -> np.ndarray:
    return table["ts"].cast(pa.int64()).to_numpy() / 1e6


def test_pieces_are_of_one_step_each_and_the_seed_fixes_every_row() -> None:
    tables = all_of(source())
    assert len(tables) == 7
    for number, table in enumerate(tables):
        times = seconds(table)
        assert (np.diff(times) >= 0).all() and (times >= number).all() and (times < min(number + 1, 6.5)).all()
    assert tables[4].num_rows == 0
    assert all_of(source()) == tables
    assert all_of(source(seed=8)) != tables
    assert len(all_of(source(step="500 ms"))) == 13


def test_rate_selectivity_and_skew_follow_their_schedules() -> None:
    rows = pa.concat_tables(all_of(source(rate="2000; 4000 from 2 s", until="8 s", k_skew="0; 1 from 3 s; 2 from 5 s")))
    times, keys = seconds(rows), rows["k"].to_numpy()
    assert 3700 < (times < 2).sum() < 4300 < 7600 < ((times >= 2) & (times < 4)).sum() < 8400
    assert np.unique(keys[times < 3]).tolist() == list(range(10))
    assert np.bincount(keys[times < 3]).std() < 0.1 * np.bincount(keys[times < 3]).mean()
    late = keys[times >= 3]
    assert late.min() >= 0 and 90 < late.max() <= 99
    for begin, end, first in ((3, 5, np.log(2) / np.log(101)), (5, 8, 0.5 / (1 - 1 / 101))):
        within = keys[(times >= begin) & (times < end)]
        assert (within == 0).mean() == pytest.approx(first, rel=0.1), "the share of the density between 1 and 2"
    assert sorted(pc.unique(rows["name"]).to_pylist()) == ["0", "1", "2"]


def test_two_streams_of_a_seed_are_not_alike() -> None:
    one, other = (GeneratorSource.of(n, SourceSpec("generator", None, SCHEMA, "ts", options=texts())) for n in "AB")
    assert one.read(["0 of 1000000 us"]) != other.read(["0 of 1000000 us"])


def texts() -> dict[str, str]:
    return {key: str(one) for key, one in OPTIONS.items()}


REFUSED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "no seed": ({"seed": None}, "seed of the generated stream 'A' is missing.*give it: options"),
    "a seed below zero": ({"seed": -1}, "seed .* is '-1'.*whole number"),
    "no rate": ({"rate": None}, "rate .* is missing"),
    "a rate below zero": ({"rate": -3}, "rate .* has -3, which is below zero.*use 0 or more"),
    "a rate that falls below zero": ({"rate": "5; -3 from 1 s"}, "rate .* has -3, which is below zero"),
    "an endless rate": ({"rate": "inf"}, "not a finite number"),
    "too high a rate": ({"rate": 1e8}, "makes 100,000,000 rows in a step"),
    "a rate that is none": ({"rate": "fast"}, "has 'fast'.*400 from 1 minute"),
    "a schedule out of order": ({"rate": "5; 3 from 2 s; 4 from 1 s"}, "does not ascend in time at '4 from 1 s'"),
    "a schedule that begins late": ({"rate": "5 from 1 s"}, "`from` at each value except the first"),
    "a second value without a time": ({"rate": "5; 6"}, "`from` at each value except the first"),
    "a time that is none": ({"rate": "5; 6 from noon"}, "rate cannot be read: 'noon'"),
    "no values": ({"name.values": None}, "name.values .* is missing"),
    "values twice": ({"k.values": 5}, "k.values .* cannot be given together with k.selectivity"),
    "no value": ({"name.values": 0}, "has 0, which is not .*use one that is a whole number of at least 1"),
    "a selectivity above one": ({"k.selectivity": 2}, "not above 0 and at most 1"),
    "a skew below zero": ({"k.skew": -1}, "not between 0 and 100"),
    "an unknown option": ({"k.sleectivity": 2}, "k.sleectivity .* not an option of a generator.*k.selectivity"),
    "a step of no time": ({"step": "0 s"}, "step .* is 0"),
    "an end that is none": ({"until": "dawn"}, "until cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_drawn_is_refused_with_place_and_remedy(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a program, and on either host by `midstream check`, with the line of the options."""
    changed, words = REFUSED[case]
    given = {key: one for key, one in {**OPTIONS, **changed}.items() if one is not None}
    with ms.Engine(checkpoint=tmp_path / "own") as engine:
        with pytest.raises(ms.InputError, match=rf"(?s){words}") as error:
            engine.source("A", "generator", "ts", SCHEMA, options=given)
        assert error.value.place == "[streams.A]" and error.value.remedy
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(job(given))
    for host in ("embedded", "spark"):
        assert main(["check", "job.toml", "--engine", host, "--json"]) == 2
        faults = json.loads(capsys.readouterr().out)["faults"]
        assert len(faults) == 1, faults
        fault = faults[0]
        assert fault["place"].startswith("job.toml, line 7, [streams.A]") and fault["message"] in error.value.message


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, "has no schema"),
        ("k BIGINT, name VARCHAR, ts BIGINT", "'ts' .* not a column of type TIMESTAMP"),
        ("k BIGINT, name VARCHAR, at TIMESTAMP", "'ts' .* not a column of type TIMESTAMP"),
        ("k BIGINT, name DATE, ts TIMESTAMP", "'name' of type date32.* cannot hold whole numbers"),
        ("k TINYINT, name VARCHAR, ts TIMESTAMP", "'k' of type int8 cannot hold whole numbers up to 999"),
    ],
)
def test_columns_that_cannot_be_drawn_are_refused(schema: str | None, words: str) -> None:
    with pytest.raises(MidstreamError, match=words):
        source(schema, k_selectivity=0.001)


def job(options: Mapping[str, Any] = OPTIONS) -> str:
    """A job of two generated streams whose names in the checkpoint and the sink are relative."""
    written = ", ".join(f"{json.dumps(key)} = {json.dumps(one)}" for key, one in options.items())
    return f"""checkpoint = "ckpt"

[streams.A]
format = "generator"
schema = "{SCHEMA}"
timestamp = "ts"
options = {{ {written} }}

[streams.B]
format = "generator"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
options = {{ seed = 7, rate = 20, k.values = 20, until = "6 seconds" }}

[queries.all]
sql = "SELECT k, name, ts FROM A"
sink = {{ path = "all" }}

[queries.pairs]
sql = "SELECT A.k, A.ts AS a, B.ts AS b FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS"
sink = {{ path = "pairs" }}
"""


def answers(folder: Path) -> dict[str, list[pa.Table]]:
    """What is in the sinks, step by step."""
    return {name: [pq.read_table(one) for one in sorted((folder / name).glob("step=*"))] for name in ("all", "pairs")}


def test_it_is_killed_at_three_points_and_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    for folder in (calm, killed):
        folder.mkdir()
        (folder / "job.toml").write_text(job())
    command = ("run", "job.toml", "--engine", "embedded", "--once", "--json")
    monkeypatch.chdir(calm)
    assert run("midstream", *command).returncode == 0
    monkeypatch.chdir(killed)
    for at in ("before_manifest:0", "after_manifest:2", "after_sink:4"):
        done = run("midstream", *command, MIDSTREAM_KILL_AT=at)
        assert done.returncode == -signal.SIGKILL, (at, done.stderr[-2000:])
    assert run("midstream", *command).returncode == 0
    assert answers(killed) == answers(calm)
    assert pa.concat_tables(answers(calm)["all"]) == pa.concat_tables(all_of(source()))


def test_another_length_of_steps_on_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        engine.source("A", "generator", "ts", SCHEMA, options=OPTIONS)
        engine.add_query("q", "SELECT k FROM A")
        assert engine.pull() is not None
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        engine.source("A", "generator", "ts", SCHEMA, options={**OPTIONS, "step": "2 seconds"})
        with pytest.raises(ms.CheckpointError, match=r"its step from 1 s to 2 s.*step = \"1000000 us\""):
            engine.pull()


def test_a_job_that_goes_back_generates_the_rows_again(tmp_path: Path) -> None:
    def rest() -> list[int]:
        with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
            engine.source("A", "generator", "ts", SCHEMA, options={**OPTIONS, "until": "40 seconds"})
            engine.add_query("q", "SELECT k FROM A")
            found = list[int]()
            while (answer := engine.pull()) is not None:
                found += answer["q"]["k"].to_pylist()
            return found

    every = rest()
    ms.open(tmp_path / "ckpt").rewind(35)
    again = rest()
    assert again and again == every[-len(again) :] and not rest()
