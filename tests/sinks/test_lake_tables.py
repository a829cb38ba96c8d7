"""The sinks of Delta and Iceberg tables."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.sinks import Sink, as_sink
from midstream.sinks.delta import DeltaSink
from midstream.testing import SinkCase, check_sink
from tests.sinks.lakes import LAKES, Lake, describe_catalog
from tests.sinks.steps import commit


@pytest.fixture(params=list(LAKES))
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    describe_catalog(tmp_path, monkeypatch)
    return LAKES[request.param]


@pytest.fixture
def sink(lake: Lake, tmp_path: Path) -> Sink:
    found = lake.make(tmp_path)
    found.open()
    return found


def numbers(*keys: int) -> pa.Table:
    return pa.table({"k": keys, "s": ["x"] * len(keys)}, pa.schema([("k", "int64"), ("s", "string")]))


def steps(sink: Sink, folder: Path, which: Iterable[int], query: str = "q") -> None:
    for step in which:
        commit(sink, folder, step, numbers(step), query)


def test_it_keeps_the_contract(lake: Lake) -> None:
    check_sink(SinkCase(lake.make, lake.rows))


NESTED = pa.struct([("list", pa.list_(pa.float64())), ("at", pa.timestamp("us"))])
WHEN = dt.datetime(2013, 11, 3, 1, 30, 0, 123456)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "byte": (pa.uint8(), [0, 255]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1]),
    "huge": (pa.uint64(), [0, 2**64 - 1]),
    "real": (pa.float64(), [0.1, -float("inf")]),
    "text": (pa.string(), ["", 'a "b"\n☃']),
    "word": (pa.dictionary(pa.int32(), pa.string()), ["one", "other"]),
    "raw": (pa.binary(), [b"", b"\x00\xff"]),
    "price": (pa.decimal128(20, 4), [Decimal("-0.0001"), Decimal("1234567890123456.7890")]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "local": (pa.timestamp("us"), [WHEN, dt.datetime(1, 1, 1)]),
    "zoned": (pa.timestamp("us", "America/New_York"), [WHEN.replace(tzinfo=dt.UTC)] * 2),
    "nested": (NESTED, [{"list": [1.5, None], "at": WHEN}, {"list": [], "at": None}]),
}


def test_every_type_comes_back_as_it_was(lake: Lake, sink: Sink, tmp_path: Path) -> None:
    given = {name: [*values, None] for name, (_, values) in COLUMNS.items()}
    commit(sink, tmp_path, 0, pa.table({n: pa.array(given[n], kind) for n, (kind, _) in COLUMNS.items()}))
    found = lake.table(tmp_path)
    assert found is not None
    assert {name: found[name].to_pylist() for name in found.column_names} == given


def test_going_back_undoes_nothing_of_others(lake: Lake, sink: Sink, tmp_path: Path) -> None:
    steps(sink, tmp_path, [0, 1])
    lake.append(tmp_path, numbers(100))
    steps(sink, tmp_path, [2, 3])
    lake.rearrange(tmp_path)
    sink.forget_after("q", 1)
    assert lake.keys(tmp_path) == [0, 1, 100], "what came before is kept, whosever it is"
    steps(sink, tmp_path, [2])
    for go_back in (sink.check_forget, sink.forget_after):
        undone = r"cannot go back to step 0: this would also undo version .*, which another query wrote"
        with pytest.raises(ms.SinkError, match=undone):
            go_back("q", 0)
    assert lake.keys(tmp_path) == [0, 1, 2, 100]


def test_going_back_again_and_again(lake: Lake, sink: Sink, tmp_path: Path) -> None:
    steps(sink, tmp_path, range(5))
    sink.forget_after("q", 3)
    steps(sink, tmp_path, [4, 6])
    sink.check_forget("q", 5)
    assert lake.keys(tmp_path) == [0, 1, 2, 3, 4, 6]
    sink.forget_after("q", 5)
    assert lake.keys(tmp_path) == [0, 1, 2, 3, 4]
    sink.forget_after("q", 1)
    assert lake.keys(tmp_path) == [0, 1]
    sink.forget_after("q", -1)
    assert lake.keys(tmp_path) == []
    sink.forget_after("q", -1)
    steps(sink, tmp_path, [0, 1])
    assert lake.keys(tmp_path) == [0, 1]
    sink.forget_after("q", 0)
    assert lake.keys(tmp_path) == [0]


def test_steps_of_several_queries_are_kept_apart(lake: Lake, sink: Sink, tmp_path: Path) -> None:
    steps(sink, tmp_path, [0, 1], "one")
    steps(sink, tmp_path, [0, 1], "other")
    assert lake.keys(tmp_path) == [0, 0, 1, 1]
    sink.forget_after("other", 0)
    assert lake.keys(tmp_path) == [0, 0, 1]
    with pytest.raises(ms.SinkError, match="which another query wrote"):
        sink.forget_after("one", 0)


def test_a_step_that_lies_behind_the_table_is_refused(lake: Lake, sink: Sink, tmp_path: Path) -> None:
    """The checkpoint was restored from a backup, the table was not."""
    steps(sink, tmp_path, [5])
    with pytest.raises(
        ms.SinkError,
        match="the sink's step 5 of query 'q' is not on the time line of the job's step 3",
    ):
        steps(sink, tmp_path, [3])
    assert lake.keys(tmp_path) == [5]


def test_of_two_drivers_with_one_step_only_one_appends(
    lake: Lake, sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other has read the table before; its commit is refused, and it sees then that the step is there."""
    steps(sink, tmp_path, [0])
    original, first = type(sink)._check_columns, []  # type: ignore[attr-defined]

    def meanwhile(self: Sink, *given: Any) -> None:
        if not first:
            first.append(self)
            steps(lake.make(tmp_path), tmp_path / "first", [1])
        original(self, *given)

    monkeypatch.setattr(type(sink), "_check_columns", meanwhile)
    steps(sink, tmp_path, [1])
    assert first and lake.keys(tmp_path) == [0, 1]
    steps(sink, tmp_path, [1, 2])
    assert lake.keys(tmp_path) == [0, 1, 2]


def test_others_may_append_at_the_same_time(
    lake: Lake, sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps(sink, tmp_path, [0])
    original, others = type(sink)._check_columns, [100, 101]  # type: ignore[attr-defined]

    def meanwhile(self: Sink, *given: Any) -> None:
        if others:
            lake.append(tmp_path, numbers(others.pop()))
        original(self, *given)

    monkeypatch.setattr(type(sink), "_check_columns", meanwhile)
    steps(sink, tmp_path, [1])
    assert lake.keys(tmp_path)[:2] == [0, 1]
    assert set(lake.keys(tmp_path)) | set(others) == {0, 1, 100, 101}


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"k": [1]}),
        pa.table({"k": [1], "s": ["x"], "t": [1]}),
        pa.table({"k": ["1"], "s": ["x"]}),
        pa.table({"k": [1.5], "s": ["x"]}),
    ],
    ids=lambda rows: str(rows.schema).replace("\n", ", "),
)
def test_what_does_not_fit_is_refused_whole(lake: Lake, sink: Sink, tmp_path: Path, rows: pa.Table) -> None:
    steps(sink, tmp_path, [0])
    with pytest.raises(ms.SinkError, match=r"table.*Remedy: .*columns"):
        commit(sink, tmp_path, 1, rows)
    assert lake.keys(tmp_path) == [0]


def test_columns_are_told_by_name(lake: Lake, sink: Sink, tmp_path: Path) -> None:
    steps(sink, tmp_path, [0])
    commit(sink, tmp_path, 1, numbers(1).select(["s", "k"]))
    assert [row["s"] for row in lake.rows(tmp_path)] == ["x", "x"]
    assert lake.keys(tmp_path) == [0, 1]


@pytest.mark.parametrize("path", ["s3://me:hidden@bucket/t", "https://x.blob.core.windows.net/t?sig=hidden"])
def test_credentials_never_get_into_a_manifest_or_a_message(path: str) -> None:
    with pytest.raises(ms.SinkError, match="must not contain credentials") as raised:
        as_sink({"type": "delta", "path": path}, "default")
    assert "hidden" not in str(raised.value)


def test_a_container_of_azure_is_no_credential() -> None:
    url = "abfss://container@account.dfs.core.windows.net/t"
    assert as_sink({"type": "delta", "path": url}, "default").to_json()["path"] == url
    with pytest.raises(ms.SinkError, match="must not contain credentials"):
        as_sink({"type": "delta", "path": url.replace("@", ":hidden@")}, "default")


def test_a_catalog_that_nobody_described_is_an_error_with_a_remedy() -> None:
    with pytest.raises(ms.SinkError, match=r"ns.t of catalog nobody_s.*Remedy: see that the catalog is described"):
        as_sink({"type": "iceberg", "table": "ns.t", "catalog": "nobody_s"}, "default").open()


def test_a_folder_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ms.SinkError, match=r"file/t.*Remedy"):
        steps(DeltaSink(str(tmp_path / "file" / "t")), tmp_path, [0])


@pytest.mark.parametrize(
    ("package", "extra", "options"),
    [
        ("deltalake", "delta", {"type": "delta", "path": "t"}),
        ("pyiceberg", "iceberg", {"type": "iceberg", "table": "ns.t"}),
        ("psycopg", "postgresql", {"type": "postgresql", "table": "t"}),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    package: str, extra: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ms.SinkError, match=rf"{package}.*Remedy: in a clone of midstream, pip install '.\[{extra}\]'"):
        as_sink(options, "default")
