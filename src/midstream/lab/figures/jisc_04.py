"""JISC §4: results lost by the paper's own rules over random courses."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import bars
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.jisc_rules import CASE_3, ENGINE, FRESH, OF_STREAM, PER_STATE, PRESENT, PRINTED, RULES, RuleCourse
from midstream.lab.tidy import column, table

THEOREM = Claim("JISC does not miss any output (Theorem 1).", "JISC §4, Theorem 1")
LINE_1 = Claim("A key that an incomplete state contains needs no completion there.", "JISC §4, Procedure 1, line 1")
ATTEMPTED = Claim("An attempted row finds complete entries at all operators.", "JISC §4.4, Definition 2")
BY_STREAM = Claim("It is enough to look into the hash table of the row's own stream.", "JISC §4.4")
CHILDREN = Claim("A state is complete once both of its children got complete.", "JISC §4.3, case 3")
ONCE = Claim("No output is produced more than once (Theorem 3).", "JISC §4, Theorem 3")
OURS = Claim("With attempts kept for each state nothing is lost.", "midstream, put right")

PLANS, DUE, LOST, DOUBLED = "plans", "results due", "results lost (%)", "results doubled"
COURSES, LOSING = "courses", "courses that lose results"


class Jisc04(Figure):
    """Rules of the paper, each alone and together, beside ours and the engine."""

    name: ClassVar[str] = "jisc_04"
    title: ClassVar[str] = "results lost by the printed rules"
    source: ClassVar[str] = "JISC §4, Theorem 1"
    strategies: ClassVar[frozenset[str]] = frozenset({"jisc"})
    setting: ClassVar[str] = (
        "Random courses: 60 rows of 3 keys over five streams of random rates, no window, three transitions between "
        "random plans, left-deep or bushy. A tuple-at-a-time transcription of Procedures 1 and 2 runs each course by "
        f"one rule: `{PRESENT}` completes a state only for a key that it does not contain; `{FRESH}` only for a key "
        f"that no row has brought since the transition, `{OF_STREAM}` that no row of the same stream has brought; "
        f"`{CASE_3}` declares a state complete when both children got complete, and keeps attempts for each state "
        f"otherwise; `{PRINTED}` obeys the first, second and fourth. `{PER_STATE}` keeps the attempted keys of each "
        f"state, as midstream does, and `{ENGINE}` is midstream itself, on the first of the same courses."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        courses, of_engine = scale.pick(quick=(100, 12), full=(1000, 60))
        rows = []
        for plans in ("left-deep", "bushy"):
            drawn = [RuleCourse.drawn(seed, bushy=plans == "bushy") for seed in range(courses)]
            for rule in (*RULES, ENGINE):
                due = lost = doubled = losing = 0
                taken = drawn[:of_engine] if rule == ENGINE else drawn
                for course in taken:
                    expected = course.due()
                    found = course.by_engine() if rule == ENGINE else course.by(rule)
                    missing = (expected - found).total()
                    due, lost = due + expected.total(), lost + missing
                    doubled, losing = doubled + (found - expected).total(), losing + bool(missing)
                share = 100 * lost / due if due else 0.0
                rows.append({PLANS: plans, "case": rule, COURSES: len(taken), DUE: due, LOST: share, LOSING: losing,
                             DOUBLED: doubled})  # fmt: skip
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        def losses(rule: str) -> tuple[bool, str]:
            losing, courses = column(data, LOSING, case=rule), column(data, COURSES, case=rule)
            shares = column(data, LOST, case=rule)
            numbers = ", ".join(
                f"{plans}: {share:.3g} % of the results, in {int(n)} of {int(of)} courses"
                for plans, share, n, of in zip(("left-deep", "bushy"), shares, losing, courses, strict=True)
            )
            return not losing.any(), f"lost by `{rule}`: {numbers}"

        twice = {rule: int(column(data, DOUBLED, case=rule).sum()) for rule in (*RULES, ENGINE)}
        ours, of_ours = losses(PER_STATE)
        engine, of_engine = losses(ENGINE)
        return (
            THEOREM.judged(*losses(PRINTED), "the rules below lose results, each by itself"),
            LINE_1.judged(
                *losses(PRESENT),
                "a new row leaves its own combinations in an incomplete state, so its key is present there, but the "
                "combinations of old rows with that key are not",
            ),
            ATTEMPTED.judged(
                *losses(FRESH),
                "the first row of a value may meet complete states only: it marks the value as attempted, and nothing "
                "was completed for it",
            ),
            BY_STREAM.judged(*losses(OF_STREAM), "a row of the same stream takes another way after a transition"),
            CHILDREN.judged(
                *losses(CASE_3),
                "the children are completed by probes of each other's rows, which complete nothing above them",
            ),
            ONCE.judged(
                not any(twice.values()), f"doubled: {', '.join(f'{n} by `{r}`' for r, n in twice.items())}", "counted"
            ),
            OURS.judged(ours and engine, f"{of_ours}; {of_engine}", "the rule or the engine is wrong"),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        bars(canvas.subplots(), data, PLANS, LOST)
