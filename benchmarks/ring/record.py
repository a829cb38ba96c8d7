"""Results on disk: what each contestant did with each scenario, a JSON file a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import host_report
from benchmarks.measurement import Answer, Batch, Measurement
from benchmarks.report import machine
from benchmarks.ring.contestants import Contestant
from benchmarks.ring.load import Load

LISTS = ("comparisons", "state_rows", "work", "sent", "stages")


@dataclass(frozen=True)
class Record:
    """What a contestant did: `refused` is what was said to it, `stopped` why it did not end, `failed` what must not be.

    `comparisons` and `state_rows` are of each step, over all nodes; `work` has what each node compared once the windows
    were full (on Spark: in all), `sent` the visits of partial results to nodes by hop. `stages` are those of each of
    Spark's jobs.
    """

    contestant: Contestant
    measurement: Measurement
    comparisons: tuple[int, ...] = ()
    state_rows: tuple[int, ...] = ()
    work: tuple[int, ...] = ()
    sent: tuple[int, ...] = ()
    stages: tuple[int, ...] = ()
    refused: str = ""
    stopped: str = ""
    failed: str = ""

    @staticmethod
    def nothing(contestant: Contestant, scenario: str, **why: Any) -> Record:
        """A contestant that gave no answer, and why."""
        return Record(contestant, Measurement(contestant.name, scenario, (), Answer(0, "0")), **why)

    @property
    def done(self) -> bool:
        """Whether there is an answer."""
        return not (self.refused or self.stopped or self.failed)

    def is_spread_by(self, scheme: str) -> bool:
        """Whether it is that of one query that is spread so, with an answer."""
        return self.done and self.contestant.kind == "spread" and self.contestant.name == scheme

    @property
    def scenario(self) -> str:
        """What was asked."""
        return self.measurement.scenario

    @property
    def balance(self) -> float | None:
        """What the busiest node compared, against the mean one."""
        return max(self.work) * len(self.work) / sum(self.work) if sum(self.work) else None

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        values = {name: value for name, value in vars(self).items() if name not in ("contestant", "measurement")}
        return {**values, "contestant": asdict(self.contestant), "measurement": self.measurement.to_json()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Record:
        """The record that `to_json` wrote."""
        lists = {name: tuple(value[name]) for name in LISTS}
        measurement = Measurement.from_json(value["measurement"])
        return Record(**{**value, **lists, "contestant": Contestant(**value["contestant"]), "measurement": measurement})


def measured(contestant: Contestant, scenario: str, batches: Sequence[Batch], answer: Answer) -> Measurement:
    """The measurement of a contestant."""
    return Measurement(contestant.name, scenario, tuple(batches), answer)


class Even(NamedTuple):
    """How even the nodes of a spread are on a steady stream: the busiest against the mean, by comparisons."""

    scheme: str
    nodes: int
    balance: float


class Burst(NamedTuple):
    """How even the nodes of `psp_d` are in a burst, with at most `bound` rows in a slice, or as many as come."""

    nodes: int
    bound: int | None
    balance: float


class Pause(NamedTuple):
    """The longest gap between outputs from the step on at which a node joins a ring, by this way (`none`: none joins):
    seconds, a step's the median over rounds; `against` the run in which none joins, and in `each` round as it is, the
    median. `first` is the gap of the very step.
    """

    scheme: str
    way: str
    longest: float
    against: float
    each: float
    first: float


class HopCost(NamedTuple):
    """Seconds of a step of hardly any rows, `spread` over nodes with so many hops and `without`, and those of a `bare`
    stage: a shuffle of nothing behind which Python hands on what it gets.
    """

    hops: int
    without: float
    spread: float
    bare: float

    @property
    def each(self) -> float:
        """What a hop costs beyond its work."""
        return (self.spread - self.without) / self.hops


@dataclass(frozen=True)
class Report:
    """All records of a host."""

    host: str
    load: Load
    records: tuple[Record, ...] = ()
    evenness: tuple[Even, ...] = ()
    bursts: tuple[Burst, ...] = ()
    pauses: tuple[Pause, ...] = ()
    hop_costs: tuple[HopCost, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=machine)

    def of(self, scenario: str) -> list[Record]:
        """The records of a scenario."""
        return [record for record in self.records if record.scenario == scenario]

    def contestants(self, scenario: str) -> list[Contestant]:
        """Who took part in a scenario, each once."""
        return list(dict.fromkeys(record.contestant for record in self.of(scenario)))

    def rounds(self, scenario: str, contestant: Contestant) -> list[Record]:
        """All rounds of a contestant that ended."""
        return [record for record in self.of(scenario) if record.contestant == contestant and record.done]

    def rate(self, scenario: str, contestant: Contestant) -> float | None:
        """Rows a second in steady batches, the median over the rounds; None where there is none."""
        rates = [one.measurement.steady_rate for one in self.rounds(scenario, contestant) if one.measurement.batches]
        return median(rates) if rates else None

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that were run."""
        return list(dict.fromkeys(record.scenario for record in self.records))

    def with_records(self, scenario: str, records: Sequence[Record], order: Iterable[str]) -> Report:
        """The same with these records of a scenario in place of those that were there."""
        rows = {name: self.of(name) for name in self.scenarios} | {scenario: list(records)}
        return replace(self, records=tuple(one for name in order for one in rows.get(name, ())), machine=machine())

    def save(self, folder: Path) -> None:
        """Write the report under its host's name."""
        host_report.save(path_of(folder, self.host), self)

    @staticmethod
    def load_from(folder: Path, host: str) -> Report | None:
        """The report that `save` wrote, if there is one."""
        found = host_report.load(path_of(folder, host), _load, Record.from_json)
        if found is None:
            return None
        kinds = {"evenness": Even, "bursts": Burst, "pauses": Pause, "hop_costs": HopCost}
        lists = {name: tuple(kind(*one) for one in found.get(name, ())) for name, kind in kinds.items()}
        return Report(**{**found, **lists})


def path_of(folder: Path, host: str) -> Path:
    """Where a host's report lies."""
    return folder / f"ring_{host}.json"


def _load(nodes: Sequence[int], **others: Any) -> Load:
    return Load(tuple(nodes), **others)
