"""Results on disk: what each contestant did with each workload, and what the page says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import machine
from benchmarks.sharing.pace import Pace
from benchmarks.sharing.workload import Workload


@dataclass(frozen=True)
class Record:
    """A contestant on a workload: seconds of the measured steps, results and comparisons a step, state at the end.

    `refused` is what the engine said, `wrong` what must not be.
    """

    queries: int
    distribution: str
    filters: str
    mode: str
    rate: int
    seconds: tuple[float, ...] = ()
    results: int = 0
    state_rows: int = 0
    comparisons: int = 0
    planned: int = 0
    refused: str = ""
    wrong: str = ""

    @staticmethod
    def refusal(workload: Workload, mode: str, pace: Pace, why: str) -> Record:
        """A contestant that does not take the workload."""
        return Record(workload.queries, workload.distribution, workload.filters, mode, pace.rate, refused=why)

    @property
    def workload(self) -> Workload:
        """What was asked."""
        return Workload(self.queries, self.distribution, self.filters)

    @property
    def typical(self) -> float | None:
        """Seconds of a step: the median of the measured ones; None where none was done."""
        return median(self.seconds) if self.seconds else None

    def over(self, other: Record) -> float | None:
        """How many times as long a step takes as the other's: the median over the steps that both did.

        Steps are compared one by one, for what disturbs the machine for a while disturbs both.
        """
        ratios = [mine / its for mine, its in zip(self.seconds, other.seconds, strict=False)]
        return median(ratios) if ratios else None

    @property
    def remark(self) -> str:
        """What a reader must know of the run."""
        if self.refused:
            return "refused"
        return f"{len(self.seconds)} of {self.planned} steps" if len(self.seconds) < self.planned else ""

    def marked(self, wrong: str) -> Record:
        """The record with what is wrong about it."""
        return replace(self, wrong=wrong)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Record:
        """The record that `asdict` gave."""
        return Record(**{**value, "seconds": tuple(value["seconds"])})


@dataclass(frozen=True)
class Scaling:
    """Few and many queries that want equally many results: total a step, and seconds of each step of either."""

    mode: str
    few: int
    many: int
    rate: int
    results: tuple[int, int]
    few_seconds: tuple[float, ...]
    many_seconds: tuple[float, ...]
    required: bool = False

    @property
    def ratio(self) -> float:
        """How much longer many take than few."""
        return median(self.many_seconds) / median(self.few_seconds)

    @property
    def each(self) -> float:
        """Seconds that one query more costs."""
        return (median(self.many_seconds) - median(self.few_seconds)) / (self.many - self.few)


@dataclass(frozen=True)
class Newcomer:
    """A query added to many running ones: seconds to ask for it, of the step that takes it, and of those around."""

    host: str
    mode: str
    queries: int
    what: str
    asked: float
    step: float
    around: tuple[float, ...]

    @property
    def cost(self) -> float:
        """Seconds beyond a step."""
        return self.asked + self.step - median(self.around)


@dataclass(frozen=True)
class OnSpark:
    """So many queries on Spark by one contender: seconds of each measured step from the first query to the last.

    `stopped` says why there are no more, `answer` is rows and mark of all results.
    """

    contender: str
    queries: int
    stream_seconds: float
    rate: int
    seconds: tuple[float, ...] = ()
    results: int = 0
    mark: str = ""
    stopped: str = ""
    wrong: str = ""

    @property
    def typical(self) -> float | None:
        """Seconds of a step."""
        return median(self.seconds) if self.seconds else None

    @property
    def keeps_up(self) -> bool:
        """Whether a step takes less time than its rows took to come."""
        return self.typical is not None and self.typical <= self.stream_seconds


@dataclass(frozen=True)
class Report:
    """Everything measured in one go."""

    records: tuple[Record, ...] = ()
    scalings: tuple[Scaling, ...] = ()
    newcomers: tuple[Newcomer, ...] = ()
    spark: tuple[OnSpark, ...] = ()
    quick: bool = False
    machine: Mapping[str, Any] = field(default_factory=machine)

    def of(self, workload: Workload) -> dict[str, Record]:
        """The contestants of a workload, by mode."""
        return {record.mode: record for record in self.records if record.workload == workload}

    def workloads(self) -> list[Workload]:
        """Every workload, in the order in which they ran."""
        return list(dict.fromkeys(record.workload for record in self.records))

    def save(self, path: Path) -> None:
        """Write the report."""
        path.parent.mkdir(parents=True, exist_ok=True)
        parts: dict[str, Sequence[Any]] = {
            name: [asdict(part) for part in getattr(self, name)]
            for name in ("records", "scalings", "newcomers", "spark")
        }
        path.write_text(json.dumps({**parts, "quick": self.quick, "machine": dict(self.machine)}) + "\n")

    @staticmethod
    def load(path: Path) -> Report | None:
        """The report that `save` wrote, if there is one."""
        if not path.exists():
            return None
        value = json.loads(path.read_text())
        kinds: dict[str, Any] = {"scalings": Scaling, "newcomers": Newcomer, "spark": OnSpark}
        parts = {
            name: tuple(
                kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in part.items()}) for part in value[name]
            )
            for name, kind in kinds.items()
        }
        records = tuple(map(Record.from_json, value["records"]))
        return Report(records=records, **parts, quick=value["quick"], machine=value["machine"])
