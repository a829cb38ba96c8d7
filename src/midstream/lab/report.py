"""The lab's report: pictures, verdicts, and every claim that does not hold, as Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from midstream.lab.figure import Judgement, Scale
from midstream.lab.run import FigureOutcome

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

The papers' figures, redrawn on the real engine. `midstream lab{flag}` made this page, the pictures and the CSV files;
the same command gives the same numbers again, on any machine.

The engine runs under a *virtual processor*: so many comparisons a second of virtual time, as each figure states, and
nothing else takes time. Arrivals are Poisson processes. A step takes what has arrived; while the processor is behind,
arrivals wait; results come out when the work of their step is done. "CPU cost" is comparisons (pairs examined by the
joins), "memory" is rows in states, as in the papers. Figures that a paper draws from its equations are drawn from them.

Each claim that a paper's text makes of a figure is a check on the data. It *holds*; or it *holds in direction, not in
size*; or it *does not hold*, because of the paper; or it is *not put to the test here*, because of our set-up. All but
the first are listed with the numbers and the reason.
"""

LISTED: Mapping[Judgement, str] = {
    Judgement.FAILS: "Claims that do not hold",
    Judgement.DIRECTION: "Claims that hold in direction, not in size",
    Judgement.UNTESTED: "Claims that are not put to the test here",
}


def report(outcomes: Sequence[FigureOutcome], scale: Scale, at: Path) -> str:
    """Write the page about these figures for the file `at`; pictures are linked relative to it."""
    return "\n".join(_lines(outcomes, scale, at.parent)) + "\n"


def _lines(outcomes: Sequence[FigureOutcome], scale: Scale, folder: Path) -> Iterator[str]:
    yield HEAD.format(flag=" --quick" if scale is Scale.QUICK else "")
    verdicts = [(o, v) for o in outcomes for v in o.verdicts]
    found = {finding: [(o, v) for o, v in verdicts if v.finding is finding] for finding in Judgement}
    counts = ", ".join(f"{len(those)} {finding.value}" for finding, those in found.items())
    yield f"{len(outcomes)} figures, {len(verdicts)} claims: {counts}."
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
