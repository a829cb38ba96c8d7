"""`midstream lab`: the papers' figures, redrawn on the real engine, and their claims judged."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.console import AsJson, Failed, print_json, print_table, progress_bar, say
from midstream.model.errors import MidstreamError

if TYPE_CHECKING:
    from midstream.lab.figure import Figure, Scale
    from midstream.lab.run import Outcome

REPORT = "lab.md"


def lab(
    name: Annotated[
        str | None, typer.Argument(metavar="FIGURE", help="One figure, such as zhu_10; without it, all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller ranges: all figures within five minutes.")] = False,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where CSV and PNG files go.")] = Path("lab"),
    report_to: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help=f"The page about them all. Default: DIR/{REPORT}")
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Only say which figures there are.")] = False,
    as_json: AsJson = False,
) -> None:
    """Redraw the papers' figures on the real engine under a virtual processor, and judge the papers' claims.

    A claim that does not hold is a finding, not a failure: the command fails only where a figure could not be drawn.
    """
    from midstream.lab.discovery import figure, figures
    from midstream.lab.figure import Scale

    wanted = list(figures().values()) if name is None else [figure(name)]
    if list_only:
        _list(wanted, as_json)
        return
    scale = Scale.QUICK if quick else Scale.FULL
    outcomes, failures = _run(wanted, scale, out, as_json)
    page = _write_report(outcomes, scale, report_to or out / REPORT) if outcomes and name is None else None
    if as_json:
        print_json(
            {
                "scale": scale.value,
                "figures": [_as_json(outcome) for outcome in outcomes],
                "report": None if page is None else str(page),
                "failed": {failed: str(error) for failed, error in failures.items()},
            }
        )
    elif outcomes:
        _show(outcomes, out, page)
    if len(failures) == 1 and name is not None:
        raise failures[name]
    if failures:
        told = "; ".join(f"{failed}: {error}" for failed, error in failures.items())
        raise Failed(f"{len(failures)} figures could not be drawn: {told}", remedy="run them one by one")


def _run(wanted: list[Figure], scale: Scale, out: Path, quiet: bool) -> tuple[list[Outcome], dict[str, MidstreamError]]:
    from midstream.lab.run import need_matplotlib, run

    need_matplotlib()
    outcomes, failures = [], {}
    with progress_bar(quiet) as progress:
        task = progress.add_task("", total=len(wanted))
        for figure in wanted:
            progress.update(task, description=f"{figure.source}: {figure.title}")
            try:
                outcomes.append(run(figure, scale, out))
            except MidstreamError as error:
                # One figure that cannot be drawn leaves the others theirs.
                failures[figure.name] = error
            progress.advance(task)
    return outcomes, failures


def _write_report(outcomes: list[Outcome], scale: Scale, path: Path) -> Path:
    from midstream.lab.report import report

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report(outcomes, scale, path), encoding="utf-8")
    return path


def _list(wanted: list[Figure], as_json: bool) -> None:
    if as_json:
        print_json([_about(figure) for figure in wanted])
    else:
        rows = [(f.name, f.source, f.title, ", ".join(sorted(f.strategies))) for f in wanted]
        print_table("", ("figure", "source", "what it shows", "strategies"), rows)


def _show(outcomes: list[Outcome], out: Path, page: Path | None) -> None:
    rows = [
        (o.figure.name, v.claim.text, "holds" if v.holds else "DOES NOT HOLD", v.numbers, v.reason)
        for o in outcomes
        for v in o.verdicts
    ]
    print_table("", ("figure", "claim", "verdict", "numbers", "reason"), rows)
    holding = sum(verdict.holds for outcome in outcomes for verdict in outcome.verdicts)
    say(f"{holding} of {len(rows)} claims hold. CSV and PNG files are in {out}" + (f", all in {page}" if page else ""))


def _about(figure: Figure) -> dict[str, Any]:
    about = {key: getattr(figure, key) for key in ("name", "paper", "source", "title", "setting")}
    return {**about, "strategies": sorted(figure.strategies)}


def _as_json(outcome: Outcome) -> dict[str, Any]:
    files = {"csv": str(outcome.csv), "png": str(outcome.png)}
    return {**_about(outcome.figure), **files, "verdicts": [asdict(verdict) for verdict in outcome.verdicts]}
