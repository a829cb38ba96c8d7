"""JISC Fig. 10: output latency due to a plan transition, of plans and (§6.3) of STAIRs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.embedded import Engine
from midstream.lab.drawing import lines
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.jisc_settings import ROW, STREAMS, JoinChain
from midstream.lab.tidy import cases, column, table

SOURCE = "JISC §6.3, Fig. 10"
NEGLIGIBLE = Claim("In JISC the output latency is negligible compared to that of the moving state strategy.", SOURCE)
HASH = Claim("The latency of moving state is relatively low for hash joins, even with large windows.", SOURCE)
NESTED = Claim("For nested-loops joins the latency of moving state is very high.", SOURCE)
NESTED_JISC = Claim("JISC has minimal output latency with nested-loops joins, too.", SOURCE)

WINDOW, LATENCY, JOIN = "window (rows)", "latency (comparisons)", "join"
JOINS = 20
KINDS = ("hash", "nested loops")


class Jisc10(Figure):
    """Comparisons from the transition to the first result, over the window: hash joins and nested loops."""

    name: ClassVar[str] = "jisc_10"
    title: ClassVar[str] = "output latency"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"jisc", "moving_state"})
    setting: ClassVar[str] = (
        f"{STREAMS} 20 joins, the worst transition; it begins with one row of each stream, which have results. Latency "
        "is what is compared until these. Windows to 10,000 rows (full: 100,000) with hash joins, to 400 (2,000) with "
        "nested loops, which compare all pairs."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        windows = {
            "hash": scale.pick(quick=(100, 1000, 10_000), full=(100, 1000, 10_000, 100_000)),
            "nested loops": scale.pick(quick=(100, 200, 400), full=(100, 500, 1000, 2000)),
        }
        rows = []
        for join in KINDS:
            for window in windows[join]:
                chain = JoinChain(JOINS, window, steps=4, nested=join != "hash")
                for case in ("jisc", "moving_state"):
                    compared, results = latency(chain, case)
                    rows.append({"case": case, JOIN: join, WINDOW: window, LATENCY: compared, "results": results})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        found = {
            (case, join): column(data, LATENCY, case=case, **{JOIN: join})
            for case in cases(data, "case")
            for join in KINDS
        }
        windows = {join: column(data, WINDOW, case="jisc", **{JOIN: join}) for join in KINDS}
        growth = {
            key: float(np.polyfit(np.log(windows[key[1]]), np.log(np.maximum(values, 1)), 1)[0])
            for key, values in found.items()
        }
        shown = {
            key: f"{key[0]}, {key[1]}: {', '.join(f'{v:,.0f}' for v in values)} comparisons (like W^{growth[key]:.1f})"
            for key, values in found.items()
        }
        ratio = found["moving_state", "hash"] / found["jisc", "hash"]
        nested = found["moving_state", "nested loops"] / found["jisc", "nested loops"]
        widest = float(windows["nested loops"][-1])
        ahead = found["moving_state", "nested loops"][-1] / np.interp(
            widest, windows["hash"], found["moving_state", "hash"]
        )
        return (
            NEGLIGIBLE.judged(
                bool(ratio[-1] > 50) and growth["jisc", "hash"] < 0.2,
                f"{shown['jisc', 'hash']}; {shown['moving_state', 'hash']}",
                "the first rows complete much of the states",
            ),
            HASH.judged(growth["moving_state", "hash"] < 1.2, shown["moving_state", "hash"], "it grows faster than W"),
            NESTED.judged(
                growth["moving_state", "nested loops"] > 1.8 and ahead > 10,
                f"{shown['moving_state', 'nested loops']}: {ahead:.0f} times that of hash joins at W = {widest:g}",
                "nested loops compare few pairs more",
            ),
            NESTED_JISC.judged(
                bool((nested > 5).all()),
                f"{shown['jisc', 'nested loops']}; {shown['moving_state', 'nested loops']}",
                "where no equality gives a key, the engine completes a state as a whole when it is first probed; the "
                "paper completes what joins the probing row, from a key that its nested loops compare, too",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes, join in zip(canvas.subplots(1, 2), KINDS, strict=True):
            mine = data.filter(pa.array([found == join for found in data.column(JOIN).to_pylist()]))
            lines(axes, mine, WINDOW, LATENCY, marks=True)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_title(join, fontsize="small")


def latency(chain: JoinChain, strategy: str, form: str = "{}") -> tuple[int, int]:
    """Count the comparisons and results of the step in which the transition begins: it has one row of each stream.

    `form` makes the plans of the chain's trees: `stairs({})`.
    """
    workload = chain.workload()
    until = chain.seconds + ROW
    arrivals = workload.arrivals(until)
    engine = Engine()
    for source in workload.sources:
        engine.create_stream(source.name, source.schema, timestamp="ts")
    engine.add_query("q", workload.sql, plan=form.format(chain.old))
    for at in range(chain.steps):
        engine.push({name: rows.between(at * chain.tick, (at + 1) * chain.tick) for name, rows in arrivals.items()})
    before = engine.manifest.totals.comparisons
    engine.migrate("q", form.format(chain.worst), strategy)
    results = engine.push({name: rows.between(chain.seconds, until) for name, rows in arrivals.items()})["q"]
    return engine.manifest.totals.comparisons - before, results.num_rows


SIMILAR = Claim(
    "Similar performance figures can be obtained for the output latency of STAIRs, as it applies a greedy state "
    "migration policy.",
    "JISC §6.3",
)
AMORTIZED = Claim(
    "With JISC the cost of the Promote and Demote operations is amortized by performing them on demand.", "JISC §4.6"
)

PLANS = {"moving_state": "{}", "stairs": "stairs({})", "jisc_stairs": "stairs({})"}


class Jisc10Stairs(Figure):
    """Comparisons from the transition to the first result, over the window, between STAIRs."""

    name: ClassVar[str] = "jisc_10_stairs"
    title: ClassVar[str] = "output latency of STAIRs"
    source: ClassVar[str] = "JISC §6.3"
    strategies: ClassVar[frozenset[str]] = frozenset({"stairs", "jisc_stairs"})
    setting: ClassVar[str] = (
        f"{STREAMS} {JOINS} hash joins, the worst transition, between the same trees as in Fig. 10: moving_state "
        "between plans, stairs and jisc_stairs between eddies whose join state is kept. Latency as in Fig. 10. The "
        "paper only describes it."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for window in scale.pick(quick=(100, 1000, 10_000), full=(100, 1000, 10_000, 100_000)):
            for case, form in PLANS.items():
                compared, results = latency(JoinChain(JOINS, window, steps=4), case, form)
                rows.append({"case": case, WINDOW: window, LATENCY: compared, "results": results})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        moving, eager, lazy = (column(data, LATENCY, case=case) for case in PLANS)
        return (
            SIMILAR.judged(
                bool(np.allclose(eager, moving, rtol=0.1)),
                f"stairs: {listed(eager)} comparisons; moving_state: {listed(moving)}",
                "eddies promote more or less than a plan's states",
            ),
            AMORTIZED.judged(
                bool(eager[-1] > 50 * lazy[-1]),
                f"until the first results jisc_stairs compares {listed(lazy)} pairs, stairs {listed(eager)}",
                "the first rows already demand much of the states",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, WINDOW, LATENCY, marks=True)
        axes.set_xscale("log")
        axes.set_yscale("log")


def listed(values: np.ndarray) -> str:
    """Format numbers as a list."""
    return ", ".join(f"{value:,.0f}" for value in values)
