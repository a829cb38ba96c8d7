"""What is wrong is refused, and all else runs on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from tests.oracle.compare import rows
from tests.oracle.spec import StreamSpec
from tests.property.drive import start
from tests.property.keyed import US, keyed, pair, stream

WRONG = {
    "no SQL": ("SELEC A.u FROM A", None, ms.LanguageError),
    "unknown column": ("SELECT A.nothing FROM A", None, ms.LanguageError),
    "unknown stream": ("SELECT Z.u FROM Z", None, ms.LanguageError),
    "types that do not compare": ("SELECT A.u FROM A [ROWS 1], B [ROWS 1] WHERE A.k = B.s", None, ms.LanguageError),
    "negative window": ("SELECT A.u FROM A [RANGE -1 SECONDS], B [ROWS 1]", None, ms.LanguageError),
    "no window": ("SELECT A.u FROM A, B WHERE A.k = B.k", None, ms.LanguageError),
    "plan without a stream": ("SELECT A.u FROM A [ROWS 1], B [ROWS 1]", "A", ms.PlanError),
    "plan with a stranger": ("SELECT A.u FROM A [ROWS 1], B [ROWS 1]", "((A B) C)", ms.PlanError),
    "plan that is none": ("SELECT A.u FROM A [ROWS 1], B [ROWS 1]", "((A B)", ms.PlanError),
    "name that is taken": ("SELECT A.u FROM A", None, ms.QueryError),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_query_is_refused_and_all_else_runs_on(name: str) -> None:
    text, plan, kind = WRONG[name]
    a = stream("A", pa.int64())
    b = StreamSpec("B", pa.schema([("k", pa.int64()), ("s", pa.string()), ("u", pa.int64()), ("ts", US)]))
    engine = start([a, b])
    engine.add_query("good", pair("A", "B").cql())
    engine.push({"A": keyed(a, [1])})
    before = engine.metrics()
    with pytest.raises(kind) as caught:
        engine.add_query("good" if "taken" in name else "bad", text, plan=plan)
    assert caught.value.remedy and (caught.value.place or "taken" in name)
    assert engine.metrics() == before
    matching = keyed(a, [1]).add_column(1, "s", pa.array(["x"]))
    assert engine.push({"B": matching.select(["k", "s", "u", "ts"])})["good"].num_rows == 1


def test_a_wrong_step_is_refused_and_the_state_is_as_before() -> None:
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    engine = start([a, b])
    engine.add_query("q", pair("A", "B").cql())
    engine.push({"A": keyed(a, [1])})
    for wrong in ({"Z": keyed(a, [1])}, {"B": keyed(b, [1]), "A": keyed(a, [1]).drop_columns(["k"])}):
        with pytest.raises(ms.InputError) as caught:
            engine.push(wrong)
        assert caught.value.remedy
    assert engine.push({"B": keyed(b, [1])})["q"].num_rows == 1


@pytest.mark.parametrize(
    ("plan", "strategy", "kind"),
    [
        ("(A B)", "no such", ms.StrategyError),
        ("(A Z)", "moving_state", ms.PlanError),
        ("(A", "moving_state", ms.PlanError),
    ],
)
def test_a_wrong_migration_is_refused_and_the_query_runs_on(
    plan: str, strategy: str, kind: type[ms.MidstreamError]
) -> None:
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    engine = start([a, b])
    engine.add_query("q", pair("A", "B").cql())
    engine.push({"A": keyed(a, [1])})
    with pytest.raises(kind):
        engine.migrate("q", plan=plan, strategy=strategy)
    with pytest.raises(ms.QueryError):
        engine.migrate("nobody", plan="(A B)", strategy="moving_state")
    with pytest.raises(ms.QueryError):
        engine.drop_query("nobody")
    assert engine.push({"B": keyed(b, [1])})["q"].num_rows == 1


def test_a_stream_without_its_timestamp_column_is_refused() -> None:
    engine = ms.Engine(seed=0)
    with pytest.raises(ms.InputError) as caught:
        engine.create_stream("A", stream("A", pa.int64()).schema, timestamp="when")
    assert "when" in str(caught.value) and caught.value.remedy


def test_a_damaged_save_is_named(tmp_path: Path) -> None:
    """Any byte of any file: the error names a file; the answer is never silently another."""
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    engine = start([a, b])
    engine.add_query("q", pair("A", "B").cql())
    engine.push({"A": keyed(a, [1, 2, 3])})
    saved = tmp_path / "saved"
    engine.save(saved)
    files = [file.relative_to(saved) for file in sorted(saved.rglob("*")) if file.is_file()]
    assert files
    for number, file in enumerate(files):
        whole = (saved / file).read_bytes()
        for place, damaged in enumerate((whole[: len(whole) // 2], whole[:-9] + bytes([whole[-9] ^ 255]) + whole[-8:])):
            copy = tmp_path / f"{number}-{place}"  # a chunk is checked once in a process, when it is first read
            shutil.copytree(saved, copy)
            (copy / file).write_bytes(damaged)
            try:
                found = ms.Engine.load(copy).push({"B": keyed(b, [3, 2, 1])})["q"]
            except ms.CheckpointError as error:
                assert error.remedy
            else:
                assert sorted(rows(found.select(["a", "b"]))) == [(0, 2), (1, 1), (2, 0)], file
    with pytest.raises(ms.CheckpointError):
        ms.Engine.load(tmp_path / "nothing")


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    engine = start([stream("A", pa.int64())])
    engine.push({})
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ms.MidstreamError) as caught:
        engine.save(tmp_path / "file" / "saved")
    assert "file" in str(caught.value) and caught.value.remedy
    engine.push({})
