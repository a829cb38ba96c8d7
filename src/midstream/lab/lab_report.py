"""The lab's report: pictures, verdicts, and every claim that does not hold, as Markdown."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from midstream.lab.drawing import plain
from midstream.lab.figure import Figure, Judgement, Scale, Verdict
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
            "there is no data file of the figure", place=str(csv), remedy="measure the figure: leave out --redraw"
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


PAPERS: Mapping[str, str] = {
    "Zhu": "Y. Zhu, E. A. Rundensteiner, G. T. Heineman: Dynamic Plan Migration for Continuous Queries over Data "
    "Streams, SIGMOD 2004",
    "HybMig": "Y. Yang, J. Krämer, D. Papadias, B. Seeger: HybMig: A Hybrid Approach to Dynamic Plan Migration for "
    "Continuous Queries, TKDE 2007",
    "JISC": "A. M. Aly, W. G. Aref, M. Ouzzani, H. M. Mahmoud: JISC: Adaptive Stream Processing Using Just-In-Time "
    "State Completion, EDBT 2014",
    "Wang": "S. Wang: State-Slice: A New Stream Query Optimization Paradigm for Multi-query and Distributed "
    "Processing, PhD dissertation, Worcester Polytechnic Institute 2008",
    "OM": "D. Kulkarni, C. V. Ravishankar: OM: A Tunable Framework for Optimizing Continuous Queries over Data "
    "Streams, SBBD 2005",
}

HEAD = """# The lab

The lab draws the papers' figures again with the real engine, and checks what the papers claim of them. The table shows
how many claims hold. [What we found in the papers](papers.md) explains the findings, and [Ways to change a
plan](strategies.md) turns them into advice.

{table}

{total}

A claim *holds* if the data agree with it. It *holds in direction, not in size* if only its tendency agrees. It *does
not hold* if the data disagree because of the paper. It is *not put to the test here* if our set-up cannot show it.

## How the figures are made

`midstream lab{flag}` makes this page, the pictures and the CSV files. Its numbers are the same on any machine,
because the engine runs under a *virtual processor*. Each figure states how many comparisons that does in a second of
virtual time, and nothing else takes time. Arrivals are Poisson processes. A step takes the rows that have arrived, and
its results come out when its work is done. While the processor is behind, rows wait. One figure counts what a job on
Spark does; without Spark the command leaves it out.

As in the papers, "CPU cost" is comparisons: the pairs that joins examine. "Memory" is rows in states. If a paper draws
a figure from equations, so does the lab.

To draw one figure, name it: `midstream lab zhu_09`. `midstream lab --list` lists all figures, tables and theorems. A
figure is drawn again when what it measures changes: `git log -1 docs/lab/zhu_09.csv` names the commit of its data.
{sizes}
## Appendix

The rest of this page is for looking things up. First come the claims that do not hold as they are written, each with
its numbers and the reason. Then come all figures, by paper, with all their claims.
"""

SIZES: Mapping[Scale, str] = {
    Scale.QUICK: "Without `--quick` a figure has its full size, nearer to the paper's.\n",
    Scale.FULL: """\
All figures of the documentation have their full size. With `--quick` a figure has a smaller size. At full size,
HybMig's Figs. 17 and 18 take 7 and 6 minutes of processor time, and the others at most 4 each.
""",
}
"""The sentences of a page on the sizes of its figures."""

LISTED: Mapping[Judgement, str] = {
    Judgement.FAILS: "Claims that do not hold",
    Judgement.DIRECTION: "Claims that hold in direction, not in size",
    Judgement.UNTESTED: "Claims that are not put to the test here",
}


def report(outcomes: Sequence[FigureOutcome], scale: Scale, at: Path) -> str:
    """Write the page about these figures for the file `at`; pictures are linked relative to it."""
    return "\n".join(_lines(outcomes, scale, at.parent)) + "\n"


def _lines(outcomes: Sequence[FigureOutcome], scale: Scale, folder: Path) -> Iterator[str]:
    verdicts = [(o, v) for o in outcomes for v in o.verdicts]
    found = {finding: [(o, v) for o, v in verdicts if v.finding is finding] for finding in Judgement}
    counts = ", ".join(f"{len(those)} {finding.value}" for finding, those in found.items())
    total = f"{len(outcomes)} figures, {len(verdicts)} claims: {counts}."
    flag = " --quick" if scale is Scale.QUICK else ""
    yield HEAD.format(flag=flag, sizes=SIZES[scale], total=total, table="\n".join(_by_paper(outcomes)))
    for finding, heading in LISTED.items():
        yield f"\n## {heading}\n"
        for outcome, verdict in found[finding]:
            figure = outcome.figure
            yield f"- **[{figure.source}](#{figure.name})**: “{verdict.claim.text}”"
            yield f"  *Measured:* {_ended(verdict.numbers)}"
            yield f"  *Why:* {_ended(verdict.reason)}"
        if not found[finding]:
            yield "None."
    paper = ""
    for outcome in outcomes:
        if outcome.figure.paper != paper:
            paper = outcome.figure.paper
            yield f"\n## {paper}\n\n{PAPERS.get(paper, paper)}"
        yield from _figure(outcome, folder)


def _by_paper(outcomes: Sequence[FigureOutcome]) -> Iterator[str]:
    yield f"| paper | figures | {' | '.join(finding.value for finding in Judgement)} |"
    yield f"| --- | --: |{' --: |' * len(Judgement)}"
    for paper in dict.fromkeys(outcome.figure.paper for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.figure.paper == paper]
        counts = (sum(v.finding is finding for o in own for v in o.verdicts) for finding in Judgement)
        yield f"| [{paper}](#{paper.lower()}) | {len(own)} | {' | '.join(map(str, counts))} |"


def _figure(outcome: FigureOutcome, folder: Path) -> Iterator[str]:
    figure = outcome.figure
    yield f'\n<a id="{figure.name}"></a>'
    yield f"### {figure.source}: {figure.title}"
    yield f"\n![{figure.title}]({_link(outcome.png, folder)})\n"
    drawn = _link(outcome.png.with_suffix(".svg"), folder)
    yield f"{figure.setting} [Data]({_link(outcome.csv, folder)}), [SVG]({drawn}).\n"
    yield "| claim | verdict | numbers |"
    yield "| --- | --- | --- |"
    for verdict in outcome.verdicts:
        judged = verdict.finding.value if verdict.holds else f"**{verdict.finding.value}**"
        yield f"| {_cell(verdict.claim.text)} | {judged} | {_cell(verdict.numbers)} |"


def _ended(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _link(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()
