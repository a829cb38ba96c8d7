"""Fields of structs are found whatever their case; a value that has only other fields is a dead letter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.embedded.job_run import FileJob
from midstream.sql.job_file import read_job_file

DDL = "info STRUCT(ip VARCHAR, n BIGINT), ts TIMESTAMP"
FOUND: dict[str, tuple[Any, Any]] = {
    "as declared": ({"ip": "a", "n": 1}, {"ip": "a", "n": 1}),
    "in another case": ({"IP": "a", "N": 1}, {"ip": "a", "n": 1}),
    "one is lacking": ({"Ip": "a"}, {"ip": "a", "n": None}),
    "one is more": ({"ip": "a", "n": 1, "more": 5}, {"ip": "a", "n": 1}),
    "NULL": (None, None),
    "nothing is lost": ({"ip": None, "other": None}, {"ip": None, "n": None}),
}
DEAD: dict[str, Any] = {
    "another name": {"address": "a"},
    "other names beside NULL": {"ip": None, "address": "a"},
    "two could be meant": {"IP": "a", "Ip": "b"},
    "a value of another type": {"IP": "a", "N": "many"},
}


def engine(ddl: str = DDL) -> ms.Engine:
    made = ms.Engine()
    made.create_stream("A", ddl, timestamp="ts")
    made.add_query("q", "SELECT info FROM A")
    return made


def ways(value: Any) -> dict[str, Any]:
    """How a program may push a value."""
    arrow = pa.table({"info": pa.array([value]), "ts": pa.array([0], pa.timestamp("us"))})
    return {"arrow": arrow, "dicts": [{"info": value, "ts": "1970-01-01"}]}


@pytest.mark.parametrize("way", ["arrow", "dicts"])
@pytest.mark.parametrize("name", FOUND)
def test_fields_are_found(name: str, way: str) -> None:
    value, expected = FOUND[name]
    made = engine()
    assert made.push({"A": ways(value)[way]})["q"].to_pylist() == [{"info": expected}]
    assert not made.dead_letters


@pytest.mark.parametrize("way", ["arrow", "dicts"])
@pytest.mark.parametrize("name", DEAD)
def test_a_value_of_other_fields_is_a_dead_letter(name: str, way: str) -> None:
    made = engine()
    assert made.push({"A": ways(DEAD[name])[way]})["q"].num_rows == 0
    (dead,) = made.dead_letters["A"].to_pylist()
    assert "cannot read" in dead["_reason"] and "info" in dead["_reason"]


@pytest.mark.parametrize("way", ["arrow", "dicts"])
def test_each_value_is_judged_by_itself(way: str) -> None:
    values = [{"ip": "a"}, {"address": "b"}, None, {"ip": "c", "address": "d"}]
    rows = {"info": values, "ts": ["1970-01-01"] * 4}
    made = engine()
    pushed = (
        pa.table(rows)
        if way == "arrow"
        else [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    )
    found = made.push({"A": pushed})["q"].to_pylist()
    assert [row["info"] and row["info"]["ip"] for row in found] == ["a", None, "c"]
    assert made.dead_letters["A"].num_rows == 1


@pytest.mark.parametrize("way", ["arrow", "dicts"])
def test_fields_within_lists_and_structs(way: str) -> None:
    ddl = "info STRUCT(at STRUCT(x BIGINT)[]), ts TIMESTAMP"
    made = engine(ddl)
    assert made.push({"A": ways({"AT": [{"X": 1}, None]})[way]})["q"].to_pylist() == [
        {"info": {"at": [{"x": 1}, None]}}
    ]
    assert made.push({"A": ways({"at": [{"x": 1}, {"y": 2}]})[way]})["q"].num_rows == 0
    assert made.dead_letters["A"].num_rows == 1


def test_json_lines(tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    lines = [{"info": {"IP": "a", "N": 1}}, {"info": {"address": "a"}}]
    text = "".join(json.dumps({**line, "ts": "1970-01-01T00:00:00"}) + "\n" for line in lines)
    (tmp_path / "A" / "0.json").write_text(text)
    (tmp_path / "job.toml").write_text(
        f'checkpoint = "{tmp_path}/ckpt"\n[streams.A]\nformat = "json"\npath = "{tmp_path}/A"\nschema = "{DDL}"\n'
        f'timestamp = "ts"\n[queries.q]\nsql = "SELECT info.ip AS ip FROM A"\n'
        f'sink = {{ format = "json", path = "{tmp_path}/out" }}\n'
    )
    with FileJob(read_job_file(tmp_path / "job.toml")) as job:
        job.run(None, lambda: False, lambda _: None)
        assert job.engine.dead_letters["A"].num_rows == 1
    (found,) = (
        json.loads(line) for file in (tmp_path / "out").glob("step=*/*") for line in file.read_text().splitlines()
    )
    assert found["ip"] == "a"
