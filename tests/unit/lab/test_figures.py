"""Figures: found, well-described, and from data to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.csv
import pytest

from midstream.lab import lab_report as reporting
from midstream.lab.drawing import INK, MARKS, lines, mark_of, plain
from midstream.lab.figure import Claim, Figure, Judgement, Scale, Verdict, figure, figures
from midstream.lab.lab_report import FigureOutcome, redrawn, run
from midstream.lab.tidy import table
from midstream.migration.strategy_contract import strategies
from midstream.model.errors import MidstreamError, QueryError
from midstream.optimizer.policies.policy_contract import policies
from midstream.ring.spreading import spreadings
from midstream.sharing.schemes.scheme_contract import schemes as sharing_schemes

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

GROWS = Claim("y grows | with x", "Sample §1")
FALLS = Claim("y falls", "Sample §1")

NOT_OF_MIGRATION = {"Wang", "OM"}
"""Papers whose figures are no strategy's."""


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Figure:
    class Sample(Figure):
        name: ClassVar[str] = "sample_01"
        title: ClassVar[str] = "y vs. x"
        source: ClassVar[str] = "Sample §1, Fig. 1"
        setting: ClassVar[str] = "Two points."
        strategies: ClassVar[frozenset[str]] = frozenset({"moving_state"})

        def measure(self, scale: Scale) -> pa.Table:
            return table({"case": "old", "x": x, "y": 2.0 * x} for x in range(scale.pick(quick=2, full=9)))

        def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
            return (GROWS.judged(True, "from 0 to 2", ""), FALLS.judged(False, "from 0 to 2", "it grows"))

        def draw(self, data: pa.Table, canvas: Canvas) -> None:
            lines(canvas.subplots(), data, "x", "y", marks=True)

    return Sample()


@pytest.mark.parametrize("name", sorted(figures()))
def test_every_figure_says_what_it_is(name: str) -> None:
    found = figure(name)
    assert found.name == name
    assert all((found.title, found.setting))
    assert found.strategies or found.paper in NOT_OF_MIGRATION
    assert found.paper in reporting.PAPERS
    assert found.strategies <= set(strategies())
    assert found.policies <= set(policies())


def test_an_unknown_figure_names_the_known_ones() -> None:
    with pytest.raises(QueryError, match="zhu_10"):
        figure("zhu_99")


def test_a_claim_that_fails_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        FALLS.judged(False, "from 0 to 2", "")
    assert FALLS.judged(True, "from 2 to 0", "never mind").reason == ""


def test_a_run_leaves_data_picture_and_verdicts(sample: Figure, tmp_path: Path) -> None:
    outcome = run(sample, Scale.QUICK, tmp_path / "out")
    assert pa.csv.read_csv(outcome.csv).to_pylist() == outcome.data.to_pylist()
    assert outcome.png.read_bytes().startswith(b"\x89PNG")
    assert [verdict.holds for verdict in outcome.verdicts] == [True, False]


def test_equal_data_make_equal_pictures(sample: Figure, tmp_path: Path) -> None:
    one, two = (run(sample, Scale.QUICK, tmp_path / name).png for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert one.with_suffix(".svg").read_bytes() == two.with_suffix(".svg").read_bytes()


def test_a_figure_is_drawn_again_from_its_data(sample: Figure, tmp_path: Path) -> None:
    first = run(sample, Scale.QUICK, tmp_path)
    before = first.png.read_bytes()
    first.png.unlink()
    again = redrawn(sample, tmp_path)
    assert again.png.read_bytes() == before and again.verdicts == first.verdicts
    with pytest.raises(MidstreamError, match="there is no data file of the figure"):
        redrawn(sample, tmp_path / "nowhere")


def test_no_two_strategies_look_alike() -> None:
    assert set(strategies()) - {"pause_drain_resume"} <= INK.keys() | {"auto"}
    for kind in (strategies(), sharing_schemes(), policies(), spreadings()):
        colours = [INK[name] for name in kind if name in INK]
        assert len(colours) == len(set(colours))
    marks = [mark_of(name) for name in strategies() if name in MARKS]
    assert len(marks) == len(set(marks))


def test_numbers_on_axes_are_plain() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas()
    FigureCanvasAgg(canvas)
    axes = canvas.subplots()
    axes.plot([1, 10], [100, 1_000_000])
    axes.set_yscale("log")
    plain(canvas)
    canvas.canvas.draw()
    texts = [label.get_text() for label in axes.get_yticklabels()]
    assert "10,000" in texts and not any("$" in text for text in texts)


def test_the_report_lists_what_does_not_hold(sample: Figure, tmp_path: Path) -> None:
    outcome = run(sample, Scale.QUICK, tmp_path / "pictures")
    text = reporting.report([outcome], Scale.QUICK, tmp_path / "lab.md")
    assert "2 claims: 1 holds, 0 holds in direction, not in size, 1 does not hold, 0 not put to the test here." in text
    assert "“y falls”\n  *Measured:* from 0 to 2.\n  *Why:* it grows." in text
    assert "![y vs. x](pictures/sample_01.png)" in text
    assert "| y grows \\| with x | holds | from 0 to 2 |" in text
    assert "`midstream lab --quick` makes this page" in text
    assert "`midstream lab` makes this page" in reporting.report([outcome], Scale.FULL, tmp_path / "lab.md")


@pytest.mark.parametrize(
    ("verdict", "finding", "section"),
    [
        (FALLS.sized(True, True, "by 3, the paper says 3", "so"), Judgement.HOLDS, None),
        (
            FALLS.sized(True, False, "by 1, the paper says 3", "so"),
            Judgement.DIRECTION,
            "hold in direction, not in size",
        ),
        (FALLS.sized(False, False, "it grows", "so"), Judgement.FAILS, "do not hold"),
        (FALLS.sized(False, True, "it grows", "so"), Judgement.FAILS, "do not hold"),
        (FALLS.untested("it falls", "we hold y down"), Judgement.UNTESTED, "are not put to the test here"),
    ],
)
def test_a_verdict_is_one_of_four(
    sample: Figure, tmp_path: Path, verdict: Verdict, finding: Judgement, section: str | None
) -> None:
    """A claim that agrees in direction only, or that our set-up cannot test, is not counted among those that hold."""
    assert verdict.finding is finding and verdict.holds is (finding is Judgement.HOLDS)
    outcome = FigureOutcome(sample, table([]), (verdict,), tmp_path / "a.csv", tmp_path / "a.png")
    text = reporting.report([outcome], Scale.FULL, tmp_path / "lab.md")
    assert f"1 {finding.value}" in text
    for other in ("do not hold", "hold in direction, not in size", "are not put to the test here"):
        listed = text.partition(f"## Claims that {other}\n")[2].partition("\n## ")[0]
        assert ("y falls" in listed) is (other == section)
    assert f"| y falls | {'holds' if verdict.holds else f'**{finding.value}**'} |" in text


def test_without_matplotlib_the_remedy_is_named(
    sample: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MidstreamError, match=r"pip install '\.\[lab\]'"):
        run(sample, Scale.QUICK, tmp_path)
