"""The lab's report: pictures, verdicts, and every claim that does not hold, as Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from midstream.lab.figure import Judgement, Scale
from midstream.lab.figure_files import FigureOutcome

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
{quick}
## Appendix

The rest of this page is for looking things up. First come the claims that do not hold as they are written, each with
its numbers and the reason. Then come all figures, by paper, with all their claims.
"""

QUICK = """\
Without `--quick` a figure has its full size. In midstream's documentation these figures have it: HybMig's Figs. 17
and 18, JISC's Figs. 7 to 9, 11 and 12, and Zhu's Fig. 9. HybMig's two take 7 and 6 minutes of processor time.
"""
"""What a page of `--quick` says of figures at full size."""

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
    flag, quick = (" --quick", QUICK) if scale is Scale.QUICK else ("", "")
    yield HEAD.format(flag=flag, quick=quick, total=total, table="\n".join(_by_paper(outcomes)))
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
