"""OM Fig. 4(b): fidelity of a three-way join against the granularity of the chart, for two kinds of streams."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.om_figures import CASE, DRIFTING, FIDELITY, ROUNDS, STREAMS, OmFigure
from midstream.lab.om_rounds import BOUND, PAPER, Q2, WEIGHED, Rounds
from midstream.lab.om_streams import real_joined, urnd
from midstream.lab.tidy import column, table

SOURCE = "OM §5.3, Fig. 4(b)"
HIGHER = Claim("The fidelity is always higher for the DEC dataset than for URND.", SOURCE)
STABLE = Claim("The fidelity stabilizes at a saturation point: k = 5 for DEC.", SOURCE)
RANDOM = Claim("For URND the saturation point is k = 8.", SOURCE)
CUBED = Claim("There are 3 dimensions, hence the optimization overhead is of the order k^3.", "OM §5.3")

DEC, URND = "DEC", "URND"
ASSUMED = "the traces are not to be had, and streams of ours are run for both"
ANEW, KNOWN = ", contested regions weighed anew", f", {BOUND}"
CASES = {PAPER: "", WEIGHED: ANEW, BOUND: KNOWN}
SEEDS = (1, 2)
REGIONS = "regions"


class Om04B(OmFigure):
    """Mean fidelity by the number of partitions a dimension."""

    name: ClassVar[str] = "om_04_b"
    title: ClassVar[str] = "granularity of the chart of a three-way join"
    source: ClassVar[str] = SOURCE
    policies: ClassVar[frozenset[str]] = frozenset({"lambda_chart"})
    x: ClassVar[str] = "k"
    setting: ClassVar[str] = (
        STREAMS
        + f"Q2, coefficient of variation {DRIFTING} (DEC). URND is not averaged: each second is drawn for itself, "
        "uniformly, with the same coefficient of variation. The mean of two runs; also with contested regions weighed "
        "anew, and by the plan that is surest to whoever knows all before a round, and how it is drawn."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for kind, made in ((DEC, real_joined), (URND, urnd)):
            played = [Rounds(Q2, made(ROUNDS, DRIFTING, seed)) for seed in SEEDS]
            for k in scale.pick(quick=(2, 3, 4, 5, 6, 8, 10), full=tuple(range(2, 13))):
                charts = [rounds.chart(k) for rounds in played]
                for contestant, said in CASES.items():
                    found = [rounds.course(contestant, chart)[0] for rounds, chart in zip(played, charts, strict=True)]
                    mean = sum(course.fidelity for course in found) / len(found)
                    rows.append({CASE: kind + said, "k": k, FIDELITY: mean, REGIONS: len(charts[0].best)})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        dec, other = self.fidelity(data, DEC), self.fidelity(data, URND)
        weighed = self.fidelity(data, DEC + ANEW)
        known = self.fidelity(data, URND + KNOWN)
        sizes = dict(zip(column(data, "k", case=DEC).tolist(), column(data, REGIONS, case=DEC).tolist(), strict=True))
        return (
            HIGHER.judged(
                all(dec[k] > other[k] for k in dec),
                f"{min(dec.values()):.0%} to {max(dec.values()):.0%} against {min(other.values()):.0%} to "
                f"{max(other.values()):.0%}",
                "it is not",
            ),
            STABLE.untested(
                f"{dec[2]:.0%} at k = 2, {dec[5]:.0%} at 5, {dec[10]:.0%} at 10; with contested regions weighed anew "
                f"{weighed[2]:.0%}, {weighed[5]:.0%} and {weighed[10]:.0%}",
                f"{ASSUMED}; "
                "where the streams' rates are alike the plans' regions meet along the diagonals, which k partitions "
                "follow only the better the more there are",
            ),
            RANDOM.untested(
                f"{other[2]:.0%} at k = 2, {other[8]:.0%} at 8; bound {known[8]:.0%}",
                f"{ASSUMED}; "
                "a second that has nothing to do with those before it cannot be foreseen: one plan in three is right, "
                "however fine the chart",
            ),
            CUBED.judged(
                all(count == k**3 for k, count in sizes.items()), f"{sizes[10]} regions at k = 10", "there are others"
            ),
        )
