"""JISC §4.7: results of set differences that are lost where rows are forwarded past incomplete states."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import bars
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.jisc_difference import COMPLETED, ENGINE, FORWARDED, RULES, DifferenceCourse
from midstream.lab.tidy import column, table

CLEARED = Claim(
    "An inner row that is forwarded past incomplete states to the first complete one clears what it matches; inner "
    "rows stay.",
    "JISC §4.7",
)
SLIDING = Claim("Forwarding carries a plan of set differences to another one, with sliding windows.", "JISC §4.7, §2.1")
ONCE = Claim("No output is produced more than once (Theorem 3), by set differences.", "JISC §4.7")
OURS = Claim("With the state below completed for the key that comes free nothing is lost.", "midstream, put right")

WINDOWS, DUE, LOST, DOUBLED = "windows", "results due", "results lost (%)", "results doubled"
COURSES, LOSING = "courses", "courses that lose results"
STAYING, ENDING = "inner rows stay", "inner windows end"


class Jisc047(Figure):
    """Forwarding as printed, beside states completed for a key, and the engine."""

    name: ClassVar[str] = "jisc_04_7"
    title: ClassVar[str] = "results of set differences lost by forwarding"
    source: ClassVar[str] = "JISC §4.7"
    strategies: ClassVar[frozenset[str]] = frozenset({"jisc"})
    setting: ClassVar[str] = (
        "Random courses: 120 rows of 8 keys, a row a second, three inner streams subtracted from an outer one, three "
        "transitions between random orders. The outer window is 30 seconds; inner windows are 5 to 29 seconds, or "
        "longer than the course. A result is an outer row that gets into the answer: as it comes, or when the last "
        "inner row that matched it has left its window. A tuple-at-a-time pipeline runs each course, by "
        f"`{FORWARDED}`, and `{COMPLETED}`: then the state below the difference is completed from the rows of the "
        f"windows before an outer row is looked for in it. `{ENGINE}` is midstream itself, on the first of the same "
        "courses. It finds the relation from the lifetimes of rows and of their matches, in which no order matters."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        courses, of_engine = scale.pick(quick=(100, 6), full=(1000, 60))
        rows = []
        for windows in (STAYING, ENDING):
            drawn = [DifferenceCourse.drawn(seed, ends=windows == ENDING) for seed in range(courses)]
            expected = [course.due() for course in drawn]
            for rule in (*RULES, ENGINE):
                due = lost = doubled = losing = 0
                taken = drawn[:of_engine] if rule == ENGINE else drawn
                for course, entries in zip(taken, expected, strict=False):
                    found = course.by_engine() if rule == ENGINE else course.by(rule)
                    missing = (entries - found).total()
                    due, lost = due + entries.total(), lost + missing
                    doubled, losing = doubled + (found - entries).total(), losing + bool(missing)
                rows.append({WINDOWS: windows, "case": rule, COURSES: len(taken), DUE: due, LOST: 100 * lost / due,
                             LOSING: losing, DOUBLED: doubled})  # fmt: skip
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        def losses(rule: str, *windows: str) -> tuple[bool, str]:
            def of(name: str) -> list[float]:
                return [float(column(data, name, **{"case": rule, WINDOWS: one})[0]) for one in windows]

            numbers = ", ".join(
                f"{one}: {share:.3g} % of the results, in {n:.0f} of {courses:.0f} courses"
                for one, share, n, courses in zip(windows, of(LOST), of(LOSING), of(COURSES), strict=True)
            )
            return not any(of(LOSING)), f"lost by `{rule}`: {numbers}"

        twice = {rule: int(column(data, DOUBLED, case=rule).sum()) for rule in (*RULES, ENGINE)}
        ours, of_ours = losses(COMPLETED, STAYING, ENDING)
        engine, of_engine = losses(ENGINE, STAYING, ENDING)
        return (
            CLEARED.judged(*losses(FORWARDED, STAYING), "an outer row is left in the answer, or kept out of it"),
            SLIDING.judged(
                *losses(FORWARDED, ENDING),
                "when an inner row leaves its window, outer rows that it kept out get in again (§2.1); they are looked "
                "for in the state below, which is incomplete and lacks them, and nothing completes it",
            ),
            ONCE.judged(
                not any(twice.values()), f"doubled: {', '.join(f'{n} by `{r}`' for r, n in twice.items())}", "counted"
            ),
            OURS.judged(ours and engine, f"{of_ours}; {of_engine}", "the rule or the engine is wrong"),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        bars(canvas.subplots(), data, WINDOWS, LOST)
