"""What the demo says of an act: on the screen, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.checkpoint.folders import Folders
from midstream.cli.output import print_table, say
from midstream.demo.play import QUERY
from midstream.explain.nodes import draw_nodes, node_values
from midstream.model.optimization import MODE_OFF

if TYPE_CHECKING:
    from midstream.demo.acts import Act
    from midstream.demo.flights import Span
    from midstream.demo.performance import Performance
    from midstream.demo.whole_answer import AnswerCheck

BEFORE, AFTER = 2, 2
"""So many reviews are shown before one that moves the query, and after it."""


def show_act(
    act: Act,
    span: Span,
    figures: Performance,
    verdict: AnswerCheck,
    rehearsals: Mapping[str, Sequence[float]],
    folder: Path,
) -> None:
    """Print the outcome of an act, and whether DuckDB gives the same answer.

    `rehearsals` maps each mode of the optimizer to the seconds that each step of the act took without Spark.
    """
    if act.is_optimized:
        _show_reviews(span, figures)
    _show_phases(act, span, figures)
    if act.spread:
        _show_nodes(act, span, figures, folder)
    if rehearsals:
        optimized, kept = rehearsals["auto"], rehearsals[MODE_OFF]
        say(
            f"Without Spark these steps take {sum(kept):.2f} s by {act.old_plan} alone, the slowest {max(kept):.2f} s, "
            f"and {sum(optimized):.2f} s with the optimizer and its reviews, the slowest {max(optimized):.2f} s."
        )
    print_table("most often", verdict.columns, verdict.highlights)
    judgement = (
        "equal to" if verdict.equal else f"NOT EQUAL ({verdict.missing:,} missing, {verdict.surplus:,} too many) to"
    )
    say(
        f"{verdict.rows:,} rows in {folder / 'results'} after {figures.seconds:.0f} seconds: "
        f"{judgement} DuckDB's {verdict.expected_rows:,}."
    )


def _show_reviews(span: Span, figures: Performance) -> None:
    switched = [i for i, review in enumerate(figures.reviews) if review.decision == "switch"]
    shown = [
        review
        for i, review in enumerate(figures.reviews)
        if any(switch - BEFORE <= i <= switch + AFTER for switch in switched)
    ]
    plans = list(dict.fromkeys(phase.plan for phase in figures.phases))
    rows = [
        (
            _begin(span, review.step),
            review.plan,
            *(review.foreseen.get(plan) for plan in plans),
            review.real,
            review.decision,
        )
        for review in shown
    ]
    say(
        f"The optimizer looks after this query (mode auto): in {len(switched)} of {len(figures.reviews)} reviews it "
        "decided for another plan. Work foreseen by plan, and the real work of the one that ran, in nanoseconds for a "
        "second of flights:"
    )
    print_table("", ("review", "runs by", *(f"foreseen {plan}" for plan in plans), "real", "decision"), rows)
    for i in switched:
        review = figures.reviews[i]
        begin = _begin(span, review.step)
        say(f"Proposed on {begin}: {review.chosen} instead of {review.plan}. Why: {review.reason}.")


def _begin(span: Span, step: int) -> str:
    return span.dates(step, step).split(" to ")[0]


def _show_phases(act: Act, span: Span, figures: Performance) -> None:
    # The first plan's comparisons stand next to those of each plan, and what the changes of plan cost.
    rows = [
        (
            span.dates(phase.first, phase.last),
            phase.plan,
            phase.rows_in,
            phase.rows_out,
            phase.comparisons,
            phase.old_plan_comparisons,
        )
        for phase in figures.phases
    ]
    print_table("", ("2013", "plan", "rows in", "rows out", "comparisons", f"under {act.begins}"), rows)
    for switch, after in zip(figures.switches, figures.phases[1:], strict=not act.spread):
        say(
            f"On {_begin(span, after.first)} the running query was carried from {switch.old} to {switch.new} by "
            f"{switch.strategy}; moving its state took {switch.comparisons:,} comparisons, foreseen were "
            f"{switch.foreseen:,.0f}."
        )
        share = 1 - after.comparisons / max(after.old_plan_comparisons, 1)
        say(f"It saved {share:.0%} of the comparisons that {act.old_plan} would have made. {act.why}")


def _show_nodes(act: Act, span: Span, figures: Performance, folder: Path) -> None:
    _, after = figures.phases
    say(f"On {_begin(span, after.first)} the running query went from one node over to {after.plan}. {act.why}")
    for line in draw_nodes(_nodes(folder)):
        say(line)


def _nodes(folder: Path) -> dict[str, Any]:
    manifest = Folders(str(folder / "checkpoint")).manifests.latest()
    assert manifest is not None
    return node_values(manifest, QUERY)


def act_as_json(
    act: Act, figures: Performance, verdict: AnswerCheck, rehearsals: Mapping[str, Sequence[float]], folder: Path
) -> dict[str, Any]:
    """Return the outcome of an act as JSON values."""
    return {
        "act": act.name,
        "question": act.question,
        "query": QUERY,
        "sql": act.sql,
        "checkpoint": str(folder / "checkpoint"),
        "results": str(folder / "results"),
        "equal": verdict.equal,
        "rows": verdict.rows,
        "expected_rows": verdict.expected_rows,
        "highlights": [dict(zip(verdict.columns, row, strict=True)) for row in verdict.highlights],
        "seconds_without_spark": {mode: sum(seconds) for mode, seconds in rehearsals.items()},
        "slowest_step_without_spark": {mode: max(seconds) for mode, seconds in rehearsals.items()},
        **({"nodes": _nodes(folder)} if act.spread else {}),
        **asdict(figures),
    }
