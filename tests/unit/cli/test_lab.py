"""`midstream lab`: lists, redraws, reports, fails where a figure cannot be drawn."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pytest

from midstream.cli.main import main
from midstream.lab import figure
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.tidy import table
from midstream.model.errors import StrategyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


class Sample(Figure):
    """Not in the room of figures: found only where a test puts it."""

    name: ClassVar[str] = "zhu_01"
    title: ClassVar[str] = "y vs. x"
    paper: ClassVar[str] = "Zhu"
    source: ClassVar[str] = "Zhu §1, Fig. 1"
    setting: ClassVar[str] = "Points."
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state"})

    def measure(self, scale: Scale) -> pa.Table:
        return table({"x": x} for x in range(scale.pick(quick=2, full=9)))

    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        return (Claim("There are nine.", "Zhu §1").judged(len(data) == 9, f"{len(data)} points", "quick draws two"),)

    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        canvas.subplots().plot(data.column("x").to_numpy())


class Broken(Sample):
    name: ClassVar[str] = "zhu_02"

    def measure(self, scale: Scale) -> pa.Table:
        raise StrategyError("it cannot carry this box", remedy="use another")


@pytest.fixture
def known() -> dict[str, Figure]:
    return {"zhu_01": Sample()}


@pytest.fixture(autouse=True)
def figures(known: dict[str, Figure], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(figure, "figures", lambda: known)
    monkeypatch.setattr(figure._SET, "all", lambda: known)
    yield


def test_all_figures_and_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "--quick", "--out", str(tmp_path / "out")]) == 0
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"zhu_01.csv", "zhu_01.png", "zhu_01.svg", "lab.md"}
    printed = capsys.readouterr().out
    assert "DOES NOT HOLD" in printed and "quick draws two" in printed and "0 of 1 claims hold" in printed


def test_the_report_may_lie_elsewhere(tmp_path: Path) -> None:
    assert main(["lab", "--out", str(tmp_path / "docs/lab"), "--report", str(tmp_path / "docs/lab.md")]) == 0
    assert "](lab/zhu_01.png)" in (tmp_path / "docs/lab.md").read_text()


def test_one_figure_as_json_leaves_the_report_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "zhu_01", "--out", str(tmp_path), "--json"]) == 0
    found_text = json.loads(capsys.readouterr().out)
    assert found_text["scale"] == "full" and found_text["report"] is None and found_text["failed"] == {}
    assert found_text["figures"][0]["verdicts"] == [
        {
            "claim": {"text": "There are nine.", "source": "Zhu §1"},
            "finding": "holds",
            "holds": True,
            "numbers": "9 points",
            "reason": "",
        }
    ]
    assert not (tmp_path / "lab.md").exists()


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "--list"]) == 0
    assert "zhu_01" in capsys.readouterr().out
    assert main(["lab", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["strategies"] == ["moving_state"]


def test_a_figure_that_cannot_be_drawn_leaves_the_others_theirs(
    known: dict[str, Figure], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known["zhu_02"] = Broken()
    assert main(["lab", "--quick", "--out", str(tmp_path), "--jobs", "1"]) == 1
    assert (tmp_path / "zhu_01.png").exists() and (tmp_path / "lab.md").exists()
    assert "zhu_02: it cannot carry this box" in capsys.readouterr().err


class OnSpark(Sample):
    name: ClassVar[str] = "zhu_03"
    on_spark: ClassVar[bool] = True


def test_a_figure_on_spark_is_left_out_where_there_is_none(
    known: dict[str, Figure], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known["zhu_03"] = OnSpark()
    missing = ["pyspark"]
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in missing else found(name))
    assert main(["lab", "--list"]) == 0
    assert "(needs Spark)" in capsys.readouterr().out
    assert main(["lab", "--quick", "--out", str(tmp_path), "--jobs", "1"]) == 0
    assert "zhu_03 needs Spark and is left out. To measure it, in a clone" in " ".join(capsys.readouterr().out.split())
    assert (tmp_path / "zhu_01.png").exists() and not (tmp_path / "zhu_03.png").exists()
    missing.clear()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(["lab", "--quick", "--out", str(tmp_path), "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == {"zhu_03": "install Java 17 or newer, and set JAVA_HOME"}


def test_several_processes_draw_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # other processes find only the figures of the room
    some = {name: figure.figure(name) for name in ("zhu_00", "zhu_10")}
    monkeypatch.setattr(figure, "figures", lambda: some)
    assert main(["lab", "--quick", "--out", str(tmp_path / "many"), "--jobs", "2"]) == 0
    assert main(["lab", "zhu_00", "--quick", "--out", str(tmp_path / "one")]) == 0
    assert (tmp_path / "many/zhu_10.png").exists()
    for file in ("zhu_00.csv", "zhu_00.png"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "many" / file).read_bytes()


def test_an_unknown_figure_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "zhu_99"]) == 2
    assert "use one of: zhu_01\n" in capsys.readouterr().err
