"""Results on disk: one JSON file a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import host_report
from benchmarks.optimizer.contestants import Contestant
from benchmarks.optimizer.load import Load
from benchmarks.optimizer.trace import Trace
from benchmarks.report import machine

MILLION = 1e6


@dataclass(frozen=True)
class Record:
    """A row: what a contestant did with a scenario, or what went wrong (`failed`).

    `work` is in milliseconds for each step, by the optimizer's units; `seconds` is the wall clock of all steps,
    `longest` that of the longest one, `gap` the longest time between two outputs where rows come by their event time.
    `busy` and `reviewing` are seconds of processor time. `switches` are steps, and the plans that began in them.
    """

    scenario: str
    contestant: str
    kind: str
    begins: str
    ends: str = ""
    work: tuple[float, ...] = ()
    seconds: float = 0.0
    longest: float = 0.0
    gap: float = 0.0
    busy: float = 0.0
    reviewing: float = 0.0
    reviews: tuple[int, ...] = ()
    switches: tuple[tuple[int, str], ...] = ()
    results: int = 0
    mark: int = 0
    failed: str = ""
    comparisons: int = 0

    @property
    def joined(self) -> float:
        """The work of all steps, migrations included, reviews not: the same on every machine."""
        return sum(self.work)

    @property
    def total(self) -> float:
        """The work with that of reviews, which have the share in it that they have in the processor's time."""
        others = self.busy - self.reviewing
        return self.joined * (self.busy / others if others > 0 else 1.0)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        return {**asdict(self), "work": [round(one, 3) for one in self.work]}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Record:
        """The record that `to_json` wrote."""
        switches = tuple((step, plan) for step, plan in value["switches"])
        lists = {name: tuple(value[name]) for name in ("work", "reviews")}
        return Record(**{**value, **lists, "switches": switches})


def record_of(contestant: Contestant, scenario: str, trace: Trace, load: Load) -> Record:
    """What a run gave."""
    return Record(
        scenario, contestant.name, contestant.kind, contestant.plan, trace.plan,
        work=tuple(one / MILLION for one in trace.work),
        seconds=sum(trace.seconds), longest=max(trace.seconds), gap=output_gap(trace, load),
        busy=trace.busy, reviewing=trace.reviewing, reviews=trace.reviews, switches=trace.switches,
        results=sum(trace.results), mark=trace.mark, comparisons=trace.comparisons,
    )  # fmt: skip


def output_gap(trace: Trace, load: Load) -> float:
    """The longest time between two outputs, once the window is full: a step begins when its last row has come."""
    out, times = 0.0, list[float]()
    for step, (seconds, results) in enumerate(zip(trace.seconds, trace.results, strict=True)):
        out = max(out, (step + 1) * load.tick) + seconds
        if results and step * load.tick >= load.window:
            times.append(out)
    return float(np.diff(times).max()) if len(times) > 1 else 0.0


@dataclass(frozen=True)
class Report:
    """All rows of a host, at one load."""

    host: str
    load: Load
    records: tuple[Record, ...] = ()
    quick: bool = False
    machine: Mapping[str, Any] = field(default_factory=machine)

    def of(self, scenario: str) -> list[Record]:
        """The rows of a scenario."""
        return [record for record in self.records if record.scenario == scenario]

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that have been run."""
        return list(dict.fromkeys(record.scenario for record in self.records))

    def with_rows(self, scenario: str, records: Sequence[Record], order: Iterable[str]) -> Report:
        """The same with the rows of a scenario put in place of those that were there."""
        rows = {name: self.of(name) for name in self.scenarios} | {scenario: list(records)}
        ordered = tuple(record for name in order for record in rows.get(name, ()))
        return replace(self, records=ordered, machine=machine())

    def with_rows_on_disk(self, folder: Path) -> Report:
        """The same with the rows that `save` wrote before, if they were measured at the same load."""
        before = Report.load_from(folder, self.host)
        return self if before is None or before.load != self.load else replace(self, records=before.records)

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
    return folder / f"optimizer_{host}.json"
