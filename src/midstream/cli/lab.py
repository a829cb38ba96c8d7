"""`midstream lab`: the papers' figures, redrawn on the real engine, and their claims judged."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.arguments import AsJson, CommandGroup, placed
from midstream.cli.exit_codes import Failed, folder_made
from midstream.cli.output import print_json, print_table, progress_bar, say
from midstream.model.errors import MidstreamError

if TYPE_CHECKING:
    from midstream.lab.figure import Figure, Scale
    from midstream.lab.lab_report import FigureOutcome

REPORT = "lab.md"


@placed(CommandGroup.TOOLS, "midstream lab --quick --out build/lab")
def lab(
    name: Annotated[
        str | None, typer.Argument(metavar="FIGURE", help="One figure, such as zhu_10. Default: all figures.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure smaller ranges, so that all figures take at most five minutes.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for CSV and PNG files.")] = Path("lab"),
    report_to: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help=f"The file for the report on all figures. Default: DIR/{REPORT}"),
    ] = None,
    redraw: Annotated[
        bool,
        typer.Option(
            "--redraw", help="Draw figures and judge claims from the CSV files in DIR, without a measurement."
        ),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="The number of processes that draw figures.")] = 2,
    list_only: Annotated[bool, typer.Option("--list", help="List the figures, and draw nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Redraw the papers' figures with the real engine on a virtual processor, and judge the papers' claims.

    If a claim does not hold, the report says so. The command fails only if it cannot draw a figure.
    """
    from midstream.lab.figure import Scale, figure, figures
    from midstream.lab.lab_report import lacks

    chosen = list(figures().values()) if name is None else [figure(name)]
    if list_only:
        _list(chosen, as_json, whole=name is None)
        return
    scale = Scale.QUICK if quick else Scale.FULL
    missing = {one.name: remedy for one in chosen if name is None and not redraw and (remedy := lacks(one))}
    chosen = [one for one in chosen if one.name not in missing]
    outcomes, failures = _run(chosen, None if redraw else scale, out, jobs, as_json)
    page = _write_report(outcomes, scale, report_to or out / REPORT) if outcomes and name is None else None
    if as_json:
        print_json(
            {
                "scale": scale.value,
                "figures": [_as_json(outcome) for outcome in outcomes],
                "report": None if page is None else str(page),
                "left_out": missing,
                "failed": {failed: str(error) for failed, error in failures.items()},
            }
        )
    elif outcomes:
        _show(outcomes, out, page)
        for left, remedy in missing.items():
            say(f"{left} needs Spark and is left out. To measure it, {remedy}.")
    if len(failures) == 1 and name is not None:
        raise failures[name]
    if failures:
        reasons = "; ".join(f"{failed}: {error}" for failed, error in failures.items())
        raise Failed(f"cannot draw {len(failures)} figures: {reasons}", remedy="draw the figures one by one")


def _run(
    chosen: list[Figure], scale: Scale | None, out: Path, jobs: int, quiet: bool
) -> tuple[list[FigureOutcome], dict[str, MidstreamError]]:
    from midstream.lab.lab_report import need_matplotlib

    need_matplotlib()
    folder_made(out)
    drawn: list[tuple[Figure, FigureOutcome | MidstreamError]] = []
    with progress_bar(quiet) as progress:
        task = progress.add_task("drawing the papers' figures", total=len(chosen))
        for family in _drawn(_families(chosen), scale, out, jobs):
            drawn += family
            progress.advance(task, len(family))
    drawn.sort(key=lambda pair: chosen.index(pair[0]))
    outcomes = [found for _, found in drawn if not isinstance(found, MidstreamError)]
    return outcomes, {figure.name: found for figure, found in drawn if isinstance(found, MidstreamError)}


def _families(chosen: list[Figure]) -> list[list[Figure]]:
    # Those that measure alike together: they may use the same runs, made once in a process.
    found: dict[Any, list[Figure]] = {}
    for figure in chosen:
        found.setdefault(type(figure).measure, []).append(figure)
    return list(found.values())


def _drawn(
    families: list[list[Figure]], scale: Scale | None, out: Path, jobs: int
) -> Iterator[list[tuple[Figure, FigureOutcome | MidstreamError]]]:
    if jobs == 1 or len(families) == 1:
        yield from (_draw(family, scale, out) for family in families)
        return
    # A forked process might inherit a lock that a thread of Arrow holds.
    with ProcessPoolExecutor(min(jobs, len(families)), get_context("spawn")) as pool:
        pending = [pool.submit(_draw_by_name, [f.name for f in family], scale, out) for family in families]
        known = {figure.name: figure for family in families for figure in family}
        for future in as_completed(pending):
            yield [(known[name], found) for name, found in future.result()]


def _draw_by_name(names: list[str], scale: Scale | None, out: Path) -> list[tuple[str, FigureOutcome | MidstreamError]]:
    from midstream.lab.figure import figure

    return [(drawn.name, found) for drawn, found in _draw([figure(name) for name in names], scale, out)]


def _draw(family: list[Figure], scale: Scale | None, out: Path) -> list[tuple[Figure, FigureOutcome | MidstreamError]]:
    from midstream.lab.lab_report import redrawn, run

    drawn: list[tuple[Figure, FigureOutcome | MidstreamError]] = []
    for figure in family:
        try:
            drawn.append((figure, redrawn(figure, out) if scale is None else run(figure, scale, out)))
        except MidstreamError as error:
            # One figure that cannot be drawn leaves the others theirs.
            drawn.append((figure, error))
    return drawn


def _write_report(outcomes: list[FigureOutcome], scale: Scale, path: Path) -> Path:
    from midstream.lab.lab_report import report

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report(outcomes, scale, path), encoding="utf-8")
    return path


def _list(chosen: list[Figure], as_json: bool, whole: bool) -> None:
    from midstream.lab.contents import CONTENTS
    from midstream.lab.figure import figures

    if as_json:
        print_json([_about(figure) for figure in chosen])
    else:
        needs = {f.name: " (needs Spark)" if f.on_spark else "" for f in chosen}
        rows = [(f.name, f.source, f.title + needs[f.name], ", ".join(sorted(f.strategies))) for f in chosen]
        print_table("", ("figure", "source", "what it shows", "strategies"), rows)
    if whole and not as_json:
        others = [(item, why) for item, why in CONTENTS.items() if not set(why.split(", ")) <= figures().keys()]
        print_table("what the papers have besides", ("in the paper", "why it has no figure here"), others)


def _show(outcomes: list[FigureOutcome], out: Path, page: Path | None) -> None:
    rows = [
        (o.figure.name, v.claim.text, v.finding.value if v.holds else v.finding.value.upper(), v.numbers, v.reason)
        for o in outcomes
        for v in o.verdicts
    ]
    print_table("", ("figure", "claim", "verdict", "numbers", "reason"), rows)
    holding = sum(verdict.holds for outcome in outcomes for verdict in outcome.verdicts)
    say(f"{holding} of {len(rows)} claims hold. CSV and PNG files are in {out}" + (f", all in {page}" if page else ""))


def _about(figure: Figure) -> dict[str, Any]:
    about = {key: getattr(figure, key) for key in ("name", "paper", "source", "title", "setting", "on_spark")}
    return {**about, "strategies": sorted(figure.strategies)}


def _as_json(outcome: FigureOutcome) -> dict[str, Any]:
    files = {"csv": str(outcome.csv), "png": str(outcome.png)}
    return {
        **_about(outcome.figure),
        **files,
        "verdicts": [{**asdict(v), "finding": v.finding.value, "holds": v.holds} for v in outcome.verdicts],
    }
