"""Timed runs of the engine on this machine, for the unit costs of the optimizer; the clock is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from midstream.embedded import Engine
from midstream.embedded.stream_generator import GeneratedStream
from midstream.lab.generator import Workload, equal, query
from midstream.model.counters import Counters
from midstream.model.ids import CounterKey
from midstream.optimizer.cost.calibration import TimedWork

TREE, ORDERS, EDDY = "((A B) C)", "[A: B C | B: A C | C: B A]", "eddy(A B C)"
QUERY = "calibration"
WINDOW, STEPS, WARM = 5, 16, 6
"""Seconds of the windows; steps of a run, each of a second, and those of them that only fill the windows."""


@dataclass(frozen=True)
class CalibrationRun:
    """A join of three streams: its plan, rows a second of each stream, keys to choose from, hash or nested loop."""

    plan: str
    rate: float
    keys: float
    nested: bool = False

    @property
    def workload(self) -> Workload:
        """The streams and the query of the run."""
        conditions = [equal(one, other, nested=self.nested) for one, other in (("A.k", "B.k"), ("B.k", "C.k"))]
        streams = tuple(GeneratedStream(name, self.rate, {"k": self.keys}) for name in "ABC")
        return Workload(streams, query("ABC", conditions, f"RANGE {WINDOW} SECONDS"))


RUNS = (
    *(CalibrationRun(plan, rate, rate * 5) for plan in (TREE, ORDERS, EDDY) for rate in (10, 400, 4000)),
    *(CalibrationRun(plan, rate, rate / 2) for plan in (TREE, ORDERS, EDDY) for rate in (400, 2000)),
    *(CalibrationRun(TREE, rate, rate * 50) for rate in (1000, 8000)),
    *(CalibrationRun(TREE, rate, rate * 5, nested=True) for rate in (50, 200)),
)
"""Few and many rows, results that are rarer and more frequent than rows, indexes and nested loops."""


def timed_runs(clock: Callable[[], int], runs: Iterable[CalibrationRun] = RUNS) -> Iterator[TimedWork]:
    """Time each run once its windows are full, and count what it does; `clock` gives nanoseconds."""
    for run in runs:
        workload = run.workload
        with Engine() as engine:
            for stream in workload.sources:
                engine.create_stream(stream.name, stream.schema, timestamp="ts")
            engine.add_query(QUERY, workload.sql, plan=run.plan)
            arrivals = workload.arrivals(STEPS)
            before, taken, outputs = engine.manifest.operators, list[int](), 0
            for second in range(STEPS):
                rows = {name: all_rows.between(second, second + 1) for name, all_rows in arrivals.items()}
                if second == WARM:
                    before = engine.manifest.operators
                begun = clock()
                answer = engine.push(rows)[QUERY]
                if second >= WARM:
                    taken.append(clock() - begun)
                    outputs += answer.num_rows
            # The median step: one that was held up says nothing about the join.
            yield _work(round(median(taken) * len(taken)), outputs, before, engine.manifest.operators)


def _work(
    taken: int, outputs: int, before: Mapping[CounterKey, Counters], after: Mapping[CounterKey, Counters]
) -> TimedWork:
    # The cost model counts operations between two readings of an engine's counters.
    steps = STEPS - WARM
    probes = results = comparisons = inserts = routes = operators = 0
    for key, counters in after.items():
        earlier, kind = before.get(key, Counters()), key.operator.kind
        rows, made = counters.rows_in - earlier.rows_in, counters.rows_out - earlier.rows_out
        hops = counters.hops - earlier.hops
        if kind == "source":
            inserts += rows
        elif kind == "join":
            probes, operators, inserts = probes + rows, operators + steps, inserts + made
        elif hops:
            # Of a join of three streams each input makes two hops in a step.
            probes, operators, inserts = probes + hops, operators + 6 * steps, inserts + outputs
            routes += hops if kind == "eddy" else 0
        if kind != "source":
            results, comparisons = results + made, comparisons + counters.comparisons - earlier.comparisons
    # What a join gives out is kept, but for the answer.
    return TimedWork(taken, comparisons, results, inserts - outputs, probes, routes, operators, steps, outputs)
