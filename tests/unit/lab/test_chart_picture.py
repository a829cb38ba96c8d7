"""Charts as pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure as Canvas

from midstream.lab.chart_picture import chart_picture, draw_charts
from midstream.optimizer.charts.chart import Axis, ChartCourse, make_chart

RATES = tuple(Axis("rate", name, 0.0, 100.0) for name in "ABCDE")


@pytest.mark.parametrize(("dimensions", "panels"), [(1, 1), (2, 1), (3, 3), (5, 6)])
def test_each_two_axes_have_a_panel(dimensions: int, panels: int) -> None:
    chart = make_chart(RATES[:dimensions], list("ABCDE")[:dimensions], lambda points: points, k=3)
    course = ChartCourse().to(chart, [50.0] * dimensions).to(chart, [1.0, *[90.0] * (dimensions - 1)])
    canvas = Canvas()
    draw_charts([(chart, course)], canvas)
    drawn = [axes for axes in canvas.axes if axes.axison]
    assert len(drawn) == panels
    assert drawn[0].get_xlabel() == "rate of A (rows/s)"
    dots = [line for line in drawn[0].lines if line.get_marker() == "o"]
    crosses = [line for line in drawn[0].lines if line.get_marker() == "x"]
    assert len(dots) == 2 and len(crosses) == 1


def test_a_panel_is_the_cut_where_the_stream_is() -> None:
    """A rules where C is low, whatever the others are; B elsewhere."""
    chart = make_chart(RATES[:3], ["A", "B"], lambda p: p[:, [2, 2]] * [1, 0] + [[0, 50]], k=2)
    for rate, plan in ((10.0, 0), (90.0, 1)):
        canvas = Canvas()
        draw_charts([(chart, ChartCourse().to(chart, [10.0, 10.0, rate]))], canvas)
        image = canvas.axes[0].get_images()[0].get_array()
        assert image is not None and image.tolist() == [[plan, plan], [plan, plan]]


def test_equal_charts_are_equal_files(tmp_path: Path) -> None:
    chart = make_chart(RATES[:2], ["A", "B"], lambda points: points, k=4)
    course = ChartCourse().to(chart, [10.0, 20.0])
    for name in ("one", "two"):
        chart_picture([(chart, course)], "plans of q", tmp_path / name / "chart.png")
    assert (tmp_path / "one/chart.png").read_bytes() == (tmp_path / "two/chart.png").read_bytes()
    assert (tmp_path / "one/chart.png").read_bytes().startswith(b"\x89PNG")
