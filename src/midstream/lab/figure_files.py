"""From a figure to its files: CSV, PNG and verdicts."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from midstream.lab.drawing import plain
from midstream.lab.figure import Figure, Scale, Verdict
from midstream.model.errors import MidstreamError
from midstream.model.extras import install

INCHES, DOTS = (9.6, 4.8), 100


@dataclass(frozen=True)
class FigureOutcome:
    """A figure that was redrawn: its data, its verdicts and where the files are."""

    figure: Figure
    data: pa.Table
    verdicts: tuple[Verdict, ...]
    csv: Path
    png: Path


def run(figure: Figure, scale: Scale, out: Path) -> FigureOutcome:
    """Measure, judge and draw a figure; `<name>.csv` and `<name>.png` go to `out`, which is created if missing."""
    need_matplotlib()
    data = figure.measure(scale)
    out.mkdir(parents=True, exist_ok=True)
    csv, png = out / f"{figure.name}.csv", out / f"{figure.name}.png"
    pa.csv.write_csv(data, csv)
    verdicts = figure.judge(data)
    picture(figure, data, png)
    return FigureOutcome(figure, data, verdicts, csv, png)


def picture(figure: Figure, data: pa.Table, path: Path) -> None:
    """Draw a figure's data into a PNG file, and into an SVG file next to it."""
    need_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=INCHES, layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.suptitle(f"{figure.source}: {figure.title}", fontsize="medium")
    figure.draw(data, canvas)
    plain(canvas)
    # No version, no date and no random names in the files: equal data, equal bytes.
    canvas.savefig(path, dpi=DOTS, metadata={"Software": None}, pil_kwargs={"optimize": True})
    with rc_context({"svg.hashsalt": figure.name, "svg.fonttype": "none"}):
        canvas.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})


def redrawn(figure: Figure, out: Path) -> FigureOutcome:
    """Draw and judge a figure again from the data that `run` left in a folder, without measuring."""
    csv, png = out / f"{figure.name}.csv", out / f"{figure.name}.png"
    if not csv.is_file():
        raise MidstreamError(
            "there are no data of the figure", place=str(csv), remedy="measure the figure: leave out --redraw"
        )
    data = pa.csv.read_csv(csv)
    picture(figure, data, png)
    return FigureOutcome(figure, data, figure.judge(data), csv, png)


def lacks(figure: Figure) -> str:
    """Say what to install before a figure can be measured; empty if nothing is missing."""
    if figure.on_spark and importlib.util.find_spec("pyspark") is None:
        return install("spark")
    if figure.on_spark and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        return "install Java 17 or newer, and set JAVA_HOME"
    return ""


def need_matplotlib() -> None:
    """Raise an error that says what to install where the pictures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MidstreamError("matplotlib is not installed", place="package matplotlib", remedy=install("lab"))
