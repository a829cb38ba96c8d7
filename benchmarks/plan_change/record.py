"""Results on disk: one JSON file a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import host_report
from benchmarks.plan_change.contestants import AUTO, NEVER, RESTART, Contestant
from benchmarks.plan_change.load import Load
from benchmarks.plan_change.measures import GAP_ALLOWED, Measures
from benchmarks.plan_change.trace import Trace
from benchmarks.report import machine


@dataclass(frozen=True)
class Record:
    """A row: measures, or why there are none.

    `refused` is what the engine said, `failed` what went wrong. `outputs` are the steps near the change that had
    results: when they were out, in seconds since the first change, and how long the oldest of them had been possible.
    """

    scenario: str
    contestant: str
    strategy: str
    plans: tuple[str, ...]
    measures: Measures | None = None
    refused: str = ""
    failed: str = ""
    outputs: tuple[tuple[float, float], ...] = ()
    used: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The contestant, and what the chooser chose."""
        chosen = ", ".join(dict.fromkeys(self.used))
        return f"{self.contestant} ({chosen})" if self.strategy == AUTO and chosen else self.contestant

    @property
    def is_strategy(self) -> bool:
        """Whether a strategy of this package did it."""
        return self.strategy not in (NEVER, RESTART)

    @property
    def wrong(self) -> str:
        """What must not be: a failure, or results lost or doubled; empty if all is well."""
        if self.failed:
            return self.failed
        if self.measures is not None and (self.measures.lost or self.measures.doubled):
            return f"{self.measures.lost:,} results lost, {self.measures.doubled:,} doubled"
        return ""

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        return {**vars(self), "measures": self.measures and self.measures.to_json()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Record:
        """The record that `to_json` wrote."""
        measures = Measures.from_json(value["measures"]) if value["measures"] else None
        outputs = tuple((at, delay) for at, delay in value["outputs"])
        lists = {name: tuple(value[name]) for name in ("plans", "used")}
        return Record(**{**value, **lists, "measures": measures, "outputs": outputs})


def record_of(contestant: Contestant, scenario: str, plans: Sequence[str], **found: Any) -> Record:
    """A row of a contestant."""
    return Record(scenario, contestant.name, contestant.strategy, tuple(plans), **found)


def outputs_of(trace: Trace, since: float, until: float, origin: float) -> tuple[tuple[float, float], ...]:
    """When results were out between two moments, and the delay of each step's oldest one."""
    ends = np.cumsum([step.results for step in trace.steps])
    found = []
    for step, end in zip(trace.steps, ends, strict=True):
        if step.results and since <= step.at <= until:
            delay = trace.delays[end - step.results : end].max()
            found.append((round(step.at - origin, 4), round(float(delay), 4)))
    return tuple(found)


@dataclass(frozen=True)
class Report:
    """All rows of a host, at one load."""

    host: str
    load: Load
    records: tuple[Record, ...]
    remark: str = ""
    quick: bool = False
    machine: Mapping[str, Any] = field(default_factory=machine)

    def of(self, scenario: str) -> list[Record]:
        """The rows of a scenario."""
        return [record for record in self.records if record.scenario == scenario]

    def save(self, folder: Path) -> None:
        """Write the report under its host's name."""
        host_report.save(path_of(folder, self.host), self)

    @staticmethod
    def load_from(folder: Path, host: str) -> Report | None:
        """The report that `save` wrote, if there is one."""
        found = host_report.load(path_of(folder, host), Load, Record.from_json)
        return None if found is None else Report(**found)


def path_of(folder: Path, host: str) -> Path:
    """Where a host's report lies."""
    return folder / f"plan_change_{host}.json"


@dataclass(frozen=True)
class Verdict:
    """A scenario on a host: the run without a migration, the strategy of the shortest gap, and the restart."""

    host: str
    scenario: str
    never: Record
    best: Record
    restart: Record | None

    @property
    def met(self) -> bool:
        """Whether the best strategy's longest gap stays below what is allowed."""
        return self.best.measures is not None and self.best.measures.gap_ratio < GAP_ALLOWED


def verdicts(report: Report) -> list[Verdict]:
    """What every scenario of a report shows; a scenario without a reference or a strategy shows nothing."""
    found = []
    for scenario in dict.fromkeys(record.scenario for record in report.records):
        rows = [record for record in report.of(scenario) if record.measures is not None]
        never = next((row for row in rows if row.contestant == NEVER), None)
        strategies = sorted((row for row in rows if row.is_strategy), key=_gap_ratio)
        if never is not None and strategies:
            restart = next((row for row in rows if row.strategy == RESTART), None)
            found.append(Verdict(report.host, scenario, never, strategies[0], restart))
    return found


def _gap_ratio(record: Record) -> float:
    assert record.measures is not None
    return record.measures.gap_ratio
