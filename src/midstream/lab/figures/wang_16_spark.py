"""Wang Figs. 16.2 to 16.7 on real Spark, by what its nodes count, beside the virtual cluster over the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, ink, mark, mark_of
from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.figures.ring_over_time import ADAPTATIONS, OFF, RELOCATED, SMOOTHED
from midstream.lab.ring_cluster import Adaptation
from midstream.lab.ring_figures import CASE, NODES, RESULTS, ROWS, OfRing
from midstream.lab.ring_on_spark import CLUSTER, SPARK, OnCluster, RingRun, SpreadRing, ValuedRows, on_spark, session
from midstream.lab.ring_routed import MICROSECONDS
from midstream.lab.ring_settings import MOST_NODES, RATE, SELECTIVITIES, WAYS, WINDOW, costs
from midstream.lab.tidy import cases, column
from midstream.ring.cost import RingLoad, length

WHERE = "Wang §16.{}, Fig. 16.{}, on Spark"
STATE = Claim("PSP has no duplicated states: memory is pretty stable among all the experiments.", WHERE.format(2, 2))
LARGER = Claim("The average response time increases for larger join selectivities.", WHERE.format(2, 2))
LONGER = Claim("The response time increases when the cluster is too large.", WHERE.format(2, 2))
DUPLICATED = Claim("PSP-I keeps more than PSP in all the experiments.", WHERE.format(3, 3))
AT_ONCE = Claim("More nodes increase the rows that PSP-I processes at the same time.", WHERE.format(3, 3))
NOT_FASTER = Claim("More nodes do not make ATR faster: one node does all the work for a row.", WHERE.format(4, 4))
GROWING = Claim("The state of ATR increases steadily with the number of nodes.", WHERE.format(4, 4))
FALLING = Claim("The response time of CTR decreases with more nodes.", WHERE.format(4, 5))
MORE_COPIES = Claim("For a fixed number of nodes more copies result in a larger response time.", WHERE.format(4, 5))
COPIED = Claim("The state of CTR is rather stable over the nodes, and increases with more copies.", WHERE.format(4, 5))
OVERALL = Claim("Overall, PSP with optimal settings performs better than ATR and CTR.", "Wang §16.4, on Spark")
STABLER = "Fig. {}: runtime adaptation makes the system more stable, by {} against {}."
SAME = Claim("Ours, not the paper's: Spark and the virtual cluster have equal results.", "ours")
FORESEEN = Claim("Ours, not the paper's: Spark's nodes compare what the virtual cluster foresees, within 5 % in sum, "
                 "and within 25 % at the busiest node of PSP and PSP-D.", "ours")  # fmt: skip
STAYING = Claim("Ours, not the paper's: PSP-D moves no row from node to node, and PSP does.", "ours")

HOST, TIME = "host", "time (s)"
PAIRS, BUSIEST, VISITS = "pairs compared a row", "busiest node's pairs a row", "visits a row"
MOVED, BOTH = "rows moved a row", "results of both hosts"

LENGTHS, COPIES, SEGMENTS = (4, 10, 19), (1, 2, 4, 8), (10, 20, 30, 40, 50)
RINGS_OF, FIVE, ROUTED = "16.2, S {:g}", "16.3, 5-way", "16.4, 16.5"
SELECTIVITY = 0.1
"""Of the rivals."""

BURSTS: Mapping[str, tuple[float, str, float]] = {
    "16.6, twice the rate": (2.0, "middle join", 0.05),
    "16.7, twice the rate": (2.0, "small join", 0.2),
    "16.7, three times the rate": (3.0, "small join", 0.2),
}
"""The factor of the rate, the join, and its selectivity."""

STEP, STEADY, AFTER = 2.0, 2, 6
"""Seconds of a step where the rate changes, and the steps before and after that."""


class Wang16Spark(OfRing):
    """One job on Spark for each course of rates; its queries are the rings of the figures."""

    name: ClassVar[str] = "wang_16_spark"
    title: ClassVar[str] = "rings on Spark beside the virtual cluster"
    source: ClassVar[str] = "Wang §16.2-16.5, Fig. 16.2, Fig. 16.3, Fig. 16.4, Fig. 16.5, Fig. 16.6, Fig. 16.7"
    on_spark: ClassVar[bool] = True
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp", "psp_i", "psp_d", "atr", "ctr"})
    setting: ClassVar[str] = (
        "Every ring is a query of a job on real Spark (`local[2]`: nodes take turns), over the rows that the virtual "
        "cluster gets: streams of 5 rows a second (a tenth of the paper's), windows of 10 s, values that match where "
        "they lie close. The first step fills the windows and is not counted. Steps of 1 s follow (quick: 3, otherwise "
        "10); where the rate changes, after 4 s, steps of 2 s. What the nodes report is counted, for each row that "
        "comes: pairs compared, the busiest node's in each step, visits of rows and partial results to nodes. A "
        "response time is judged by the busiest node's pairs, because 19 nodes share two processors here. PSP-I has "
        "two moments in flight, not 4 or 8: Spark takes a batch as done when its function returns, so that two steps "
        "never overlap. ATR has segments of 10 to 50 s, CTR of 1 s. The lengths of an adapted ring "
        "are those that the virtual cluster chooses, given to Spark by commands. "
        "Dotted: the virtual cluster, a row after another."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        spark, seconds = session(), scale.pick(quick=3, full=10)
        rows = ValuedRows.paced(5, [(RATE, WINDOW + seconds)], seed=16)
        ends = [WINDOW + second for second in range(seconds + 1)]
        steady = list(_steady())
        found = on_spark(spark, rows, [ring for _, _, ring in steady], ends, {})
        for (panel, case, ring), run in zip(steady, found, strict=True):
            yield from _observed((panel, case), ring, run, OnCluster(rows, ring, ends), whole=True)
        for factor in dict.fromkeys(factor for factor, _, _ in BURSTS.values()):
            yield from _burst(spark, factor)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        return (*_judged_psp(data), *_judged_rivals(data), *_judged_bursts(data), *_judged_hosts(data))

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        grid = canvas.subplots(2, 4)
        for axes, panel in zip(grid.flat, cases(data, PANEL), strict=True):
            x = TIME if panel in BURSTS else NODES
            for case in cases(_of(data, PANEL, panel), CASE):
                for host, line in ((SPARK, "-"), (CLUSTER, ":")):
                    where = {PANEL: panel, CASE: case, HOST: host}
                    axes.plot(column(data, x, **where), column(data, BUSIEST, **where), line, color=ink(case),
                              marker=mark_of(case) if host == SPARK else None, markersize=3, linewidth=1,
                              label=case if host == SPARK else None)  # fmt: skip
            axes.set_title(panel, fontsize="small")
            axes.set_ylim(bottom=0)
            axes.set_xlabel(x, fontsize="small")
            axes.tick_params(labelsize="small")
            axes.legend(frameon=False, fontsize=6)
            axes.spines[["top", "right"]].set_visible(False)
            if panel in BURSTS:
                mark(axes, STEP * STEADY, "the rate")
        canvas.supylabel(BUSIEST, fontsize="small")


def _steady() -> Iterator[tuple[str, str, SpreadRing]]:
    for selectivity in SELECTIVITIES:
        for scheme in ("psp", "psp_d", *(("psp_i",) if selectivity == SELECTIVITIES[0] else ())):
            for nodes in LENGTHS:
                yield RINGS_OF.format(selectivity), scheme, SpreadRing(scheme, nodes, selectivity)
    for scheme in ("psp", "psp_d", "psp_i"):
        for nodes in LENGTHS[:2]:
            yield FIVE, scheme, SpreadRing(scheme, nodes, SELECTIVITIES[0], ways=5)
    for nodes in LENGTHS:
        for seconds in SEGMENTS:
            options = {"segment": round(seconds * MICROSECONDS), "master": "B"}
            yield ROUTED, f"atr, segments of {seconds} s", SpreadRing("atr", nodes, SELECTIVITY, options=options)
        for copies in (count for count in COPIES if 2 * count <= nodes):
            options = {"segment": round(MICROSECONDS), "copies": copies}
            yield ROUTED, f"ctr, copies {copies}", SpreadRing("ctr", nodes, SELECTIVITY, options=options)


def _burst(spark: Any, factor: float) -> Iterator[dict[str, Any]]:
    begin = WINDOW + STEP * STEADY
    rows = ValuedRows.paced(WAYS, [(RATE, begin), (RATE * factor, STEP * AFTER)], seed=16)
    ends = [WINDOW + STEP * step for step in range(STEADY + AFTER + 1)]
    rings = list[tuple[str, str, SpreadRing]]()
    for panel in (panel for panel, (times, _, _) in BURSTS.items() if times == factor):
        _, join, selectivity = BURSTS[panel]
        nodes = length(RingLoad.alike(WAYS, RATE * WINDOW, selectivity), costs(join), MOST_NODES)
        for case, adaptation in ADAPTATIONS.items():
            options: dict[str, Any] = {} if case == OFF else {"count_bound": "auto"}
            ring = SpreadRing("psp", nodes, selectivity, join, options=options, adaptation=adaptation)
            rings.append((panel, case, ring))
    foreseen = [OnCluster(rows, ring, ends) for _, _, ring in rings]
    lengths = {place: one.lengths for place, one in enumerate(foreseen) if _relocates(one.ring.adaptation)}
    found = on_spark(spark, rows, [ring for _, _, ring in rings], ends, lengths)
    for (panel, case, ring), run, one in zip(rings, found, foreseen, strict=True):
        yield from _observed((panel, case), ring, run, one, whole=False)


def _relocates(adaptation: Adaptation | None) -> bool:
    return adaptation is not None and adaptation.most > 0


def _observed(
    at: tuple[str, str], ring: SpreadRing, run: RingRun, foreseen: OnCluster, *, whole: bool
) -> Iterator[dict[str, Any]]:
    # An observation for each host, of all steps together if they are to be seen as a whole.
    both = len(run.results & foreseen.found.results)
    counts = [foreseen.rows.count(ring.ways, *ends) for ends in pairwise(foreseen.ends)]
    each = [range(len(counts))] if whole else [range(step, step + 1) for step in range(len(counts))]
    for host, found in ((SPARK, run), (CLUSTER, foreseen.found)):
        for chosen in each:
            steps, came = [found.steps[step] for step in chosen], sum(counts[step] for step in chosen)
            yield {
                PANEL: at[0],
                CASE: at[1],
                HOST: host,
                NODES: foreseen.lengths[chosen[-1]],
                TIME: foreseen.ends[chosen[-1] + 1] - WINDOW,
                PAIRS: sum(sum(step.compared) for step in steps) / came,
                BUSIEST: sum(max(step.compared) for step in steps) / came,
                VISITS: sum(step.visits for step in steps) / came,
                ROWS: float(np.mean([sum(step.held) for step in steps])),
                MOVED: sum(step.moved for step in steps) / came,
                RESULTS: len(found.results),
                BOTH: both,
            }


def _of(data: pa.Table, name: str, value: object) -> pa.Table:
    return data.filter(pa.array([found == value for found in data[name].to_pylist()]))


def _curves(data: pa.Table, name: str, host: str = SPARK) -> dict[tuple[str, str], Any]:
    # A column of each panel and case.
    found = dict.fromkeys(zip(data[PANEL].to_pylist(), data[CASE].to_pylist(), strict=True))
    return {(panel, case): column(data, name, **{PANEL: panel, CASE: case, HOST: host}) for panel, case in found}


def _span(curve: Any) -> str:
    return f"{curve[0]:,.1f} to {curve[-1]:,.1f}"


def _judged_psp(data: pa.Table) -> Iterator[Verdict]:
    rows, busiest, visits = (_curves(data, name) for name in (ROWS, BUSIEST, VISITS))
    panels = [RINGS_OF.format(selectivity) for selectivity in SELECTIVITIES]
    kept = np.concatenate([rows[panel, scheme] for panel in panels for scheme in ("psp", "psp_d")])
    yield STATE.judged(
        float(kept.max()) < 1.1 * float(kept.min()), f"{kept.min():.0f} to {kept.max():.0f} rows on average, PSP-D too",
        "it changes with the ring",
    )  # fmt: skip
    yield LARGER.judged(
        all(bool((busiest[a, s] < busiest[b, s]).all()) for a, b in pairwise(panels) for s in ("psp", "psp_d")),
        f"the busiest node compares for a row, at {LENGTHS[0]} to {LENGTHS[-1]} nodes: "
        + "; ".join(f"{p} {s} {_span(busiest[p, s])}" for p in panels for s in ("psp", "psp_d")),
        "a larger share of matches leaves a node less to compare",
    )
    yield LONGER.untested(
        f"psp at S {SELECTIVITIES[-1]:g}, {LENGTHS[0]} to {LENGTHS[-1]} nodes: the busiest node's pairs "
        f"{_span(busiest[panels[-1], 'psp'])}, visits {_span(visits[panels[-1], 'psp'])} a row",
        "19 nodes share two processors here, and what a visit costs beside a pair is the network's",
    )
    more = {at: rows[at] / rows[at[0], "psp"] for at in rows if at[1] == "psp_i"}
    yield DUPLICATED.judged(
        all(float(found.min()) > 1 for found in more.values()),
        "; ".join(f"{panel}: {_span(found)} times PSP's rows" for (panel, _), found in more.items()),
        "nothing is kept for a moment before",
    )
    pairs = _curves(data, PAIRS)
    idle = {s: 1 - pairs[panels[0], s] / (busiest[panels[0], s] * np.array(LENGTHS)) for s in ("psp", "psp_i", "psp_d")}
    yield AT_ONCE.untested(
        f"nodes wait for the busiest one, by pairs, at {LENGTHS[0]} to {LENGTHS[-1]} nodes: "
        + ", ".join(f"{scheme} {found[0]:.0%} to {found[-1]:.0%}" for scheme, found in idle.items())
        + " of a step",
        "Spark takes a batch as done when its function returns, so two steps never overlap, and PSP-I has the rows of "
        "two moments at once, however many nodes there are",
    )


def _judged_rivals(data: pa.Table) -> Iterator[Verdict]:
    rows, busiest, visits = (_curves(data, name) for name in (ROWS, BUSIEST, VISITS))
    atr = [at for at in busiest if at[1].startswith("atr")]
    ctr = [at for at in busiest if at[1].startswith("ctr")]
    yield NOT_FASTER.judged(
        all(float(busiest[at].min()) >= 0.95 * float(busiest[at][0]) for at in atr),
        "; ".join(f"{case}: {_span(busiest[panel, case])} pairs of the busiest node" for panel, case in atr),
        "several nodes share a row's work",
    )
    yield GROWING.untested(
        "; ".join(f"{case}: {_span(rows[panel, case])} rows" for panel, case in atr),
        "a node drops what no window reaches any more; Fig. 16.4 has the nodes of §15.1's formula, which keep their "
        "segments whole",
    )
    falling = [at for at in ctr if len(busiest[at]) > 1]
    yield FALLING.judged(
        all(float(busiest[at][-1]) < float(busiest[at][0]) for at in falling),
        "; ".join(f"{case}: {_span(busiest[panel, case])} pairs of the busiest node" for panel, case in falling),
        "the segments of a window lie on few nodes",
    )
    last = {case: float(busiest[panel, case][-1]) for panel, case in ctr}
    yield MORE_COPIES.judged(
        all(a < b for a, b in pairwise(last.values())),
        f"at {LENGTHS[-1]} nodes the busiest compares " + ", ".join(f"{v:.1f} with {c}" for c, v in last.items()),
        "a cover of fewer nodes is not always one whose busiest node has more",
    )
    level = {at: float(rows[at].mean()) for at in ctr}
    yield COPIED.judged(
        all(float(rows[at].max()) < 1.1 * float(rows[at].min()) for at in ctr)
        and all(level[a] < level[b] for a, b in pairwise(ctr)),
        "; ".join(f"{case}: {rows[p, case].min():.0f} to {rows[p, case].max():.0f} rows" for p, case in ctr),
        "a row has another number of copies",
    )  # fmt: skip
    psp = RINGS_OF.format(SELECTIVITY), "psp"
    best = {at: float(busiest[at].min()) for at in (psp, *atr, *ctr)}
    yield OVERALL.judged(
        all(best[psp] < found for at, found in best.items() if at != psp),
        "; ".join(f"{case}: {best[p, case]:.1f} pairs of the busiest node at its best length, and "
                  f"{visits[p, case].max():.1f} visits a row at most" for p, case in best),
        "a rival's busiest node has less to compare",
    )  # fmt: skip


def _judged_bursts(data: pa.Table) -> Iterator[Verdict]:
    busiest, lengths = _curves(data, BUSIEST), _curves(data, NODES)
    for figure in ("16.6", "16.7"):
        panels = [panel for panel in BURSTS if panel.startswith(figure)]
        grown = {
            (panel, case): float(busiest[panel, case][-STEADY:].mean() / busiest[panel, case][:STEADY].mean())
            for panel in panels
            for case in ADAPTATIONS
        }
        shown = "; ".join(
            f"{panel.split(', ')[1]}, {case}: busiest node's pairs {found:.2f} times those before, "
            f"{lengths[panel, case][0]:.0f} to {lengths[panel, case][-1]:.0f} nodes"
            for (panel, case), found in grown.items()
        )
        for adapted, without in ((SMOOTHED, OFF), (RELOCATED, SMOOTHED)):
            yield Claim(STABLER.format(figure, adapted, without), WHERE.format(5, figure[3:])).judged(
                all(grown[panel, adapted] < grown[panel, without] for panel in panels), shown,
                "slices by count are more even before the change, too; once the window is full of the new rate, slices "
                "of equal length are as even",
            )  # fmt: skip


def _judged_hosts(data: pa.Table) -> Iterator[Verdict]:
    results, both = column(data, RESULTS), column(data, BOTH)
    yield SAME.judged(
        bool(results.min() > 0 and (results == both).all()),
        f"{results.min():,} to {results.max():,} results of a ring",
        "a host has results that the other one lacks",
    )
    pairs, busiest = (
        {at: _curves(data, name)[at] / other for at, other in _curves(data, name, CLUSTER).items()}
        for name in (PAIRS, BUSIEST)
    )
    whole = np.concatenate([found for at, found in pairs.items() if at[0] not in BURSTS and at[0] != ROUTED])
    most = np.concatenate([busiest[at] for at in busiest if at[1] in ("psp", "psp_d")])
    routed = np.concatenate([found for at, found in pairs.items() if at[0] == ROUTED])
    yield FORESEEN.sized(
        bool((abs(whole - 1) <= 0.1).all()),
        bool((abs(whole - 1) <= 0.05).all() and (abs(most - 1) <= 0.25).all()),
        f"Spark's pairs {whole.min():.2f} to {whole.max():.2f} times the virtual cluster's (ATR and CTR "
        f"{routed.min():.2f} to {routed.max():.2f}), the busiest node's {most.min():.2f} to {most.max():.2f} times",
        "a step takes its rows all at once",
    )
    moved = _curves(data, MOVED)
    stay = [found for at, found in moved.items() if at[1] == "psp_d"]
    go = [found for at, found in moved.items() if at[1] == "psp"]
    yield STAYING.judged(
        all(not found.any() for found in stay) and all(bool((found > 0).all()) for found in go),
        f"psp_d {max(float(found.max()) for found in stay):g}, psp {min(float(found.min()) for found in go):.1f} to "
        f"{max(float(found.max()) for found in go):.1f} for each row that comes",
        "a row of PSP-D changes its node",
    )
