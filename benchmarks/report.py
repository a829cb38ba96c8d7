"""Results on disk: one JSON file a scenario, and one Markdown page over all of them."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent
from typing import Any

from benchmarks.compare import Comparison, compare, disagreements, value
from benchmarks.measurement import Measurement
from benchmarks.peers import PEERS
from benchmarks.scenarios import SCENARIOS, Scenario

HEAD = """# Measurements

Written by `make bench` (`python -m benchmarks.run`): every peer in a process of its own, one after the other, in
alternating order, on the same input. The rows of all answers are compared by count and by a sum of hashes; a mismatch
fails the run. On Spark both sides use the same session (`local[2]`, 8 GB), the same sources (one file a stream and
batch), checkpoints and a Parquet sink; a batch's time is Spark's `triggerExecution`, from the trigger to the commit.
*Steady* is the last half of the batches. DuckDB answers with one query over everything, Arrow in and Arrow out: the
offline limit. Values are medians over the rounds.
"""


@dataclass(frozen=True)
class Result:
    """The rounds of one scenario, and where and when they were measured."""

    scenario: str
    measurements: Sequence[Measurement]
    machine: Mapping[str, Any] = field(default_factory=lambda: machine())

    def save(self, folder: Path) -> None:
        """Write the result under its scenario's name."""
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "scenario": self.scenario,
            "machine": self.machine,
            "measurements": [measurement.to_json() for measurement in self.measurements],
        }
        (folder / f"{self.scenario}.json").write_text(json.dumps(content, indent=1) + "\n")

    @staticmethod
    def load(path: Path) -> Result:
        """The result that `save` wrote."""
        content = json.loads(path.read_text())
        measurements = [Measurement.from_json(value) for value in content["measurements"]]
        return Result(content["scenario"], measurements, content["machine"])


def machine() -> dict[str, Any]:
    """What a reader must know of the machine and the versions."""
    packages = {name: version(name) for name in ("pyspark", "pyarrow", "numpy", "duckdb")}
    return {
        "when": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **packages,
    }


def load_results(folder: Path) -> list[Result]:
    """The results of all scenarios that have been measured, in the scenarios' order."""
    return [Result.load(path) for name in SCENARIOS if (path := folder / f"{name}.json").exists()]


def page(results: Sequence[Result], quick: bool = False) -> str:
    """The Markdown page; that of a quick run shows no verdicts and says so."""
    parts = [HEAD] if not quick else [HEAD, "**A quick run on small inputs: these times mean nothing.**\n"]
    machines = {", ".join(f"{name} {fact}" for name, fact in result.machine.items()): None for result in results}
    parts += [f"Measured: {machine}.\n" for machine in machines]
    parts += [_wrong(result) for result in results if disagreements(result.measurements)]
    parts += ["## Ratios\n", _ratios([c for r in results for c in compare(r.scenario, r.measurements)], quick)]
    parts += ["## Times\n", *(_times(result, quick) for result in results)]
    refusals = {m.notes["refused"]: m.scenario for r in results for m in r.measurements if "refused" in m.notes}
    parts += [refusal(SCENARIOS[name], message) for message, name in refusals.items()]
    return "\n".join(parts)


def _ratios(comparisons: Sequence[Comparison], quick: bool) -> str:
    rows = ["| scenario | measure | ours | theirs | ours / theirs | required | |", "|---|---|--:|--:|--:|---|---|"]
    for line in comparisons:
        verdict = ("met" if line.met else "**MISSED**") if line.required and not quick else ""
        ours = f"{PEERS[line.ours][0]}: {_number(line.our_value)}"
        theirs = f"{PEERS[line.theirs][0]}: {_number(line.their_value)}"
        ratio = f"**{line.ratio:.2f}**"
        rows.append(f"| {line.scenario} | {line.measure} | {ours} | {theirs} | {ratio} | {line.required} | {verdict} |")
    return "\n".join(rows) + "\n"


def _times(result: Result, quick: bool) -> str:
    scenario = SCENARIOS[result.scenario]
    rows = [
        f"### {scenario.name}: {scenario.title}{' (quick: smaller)' if quick else ''}\n",
        f"{result.measurements[0].answer.rows:,} rows in the answer.\n",
        "| peer | rounds | seconds in all | steady rows a second | steady seconds a batch |",
        "|---|--:|--:|--:|---|",
    ]
    for name, (title, _) in PEERS.items():
        own = [measurement for measurement in result.measurements if measurement.peer == name]
        if not own:
            continue
        streaming = len(own[0].batches) > 1
        rate = _number(value(own, name, "steady rows a second")) if streaming else ""
        batches = " · ".join(" ".join(f"{b.seconds:.2f}" for b in m.steady) for m in own) if streaming else ""
        rows.append(f"| {title} | {len(own)} | {value(own, name, 'seconds in all'):.2f} | {rate} | {batches} |")
    return "\n".join(rows) + "\n"


def _wrong(result: Result) -> str:
    return f"## WRONG: answers of {result.scenario} differ\n\n" + "\n".join(disagreements(result.measurements)) + "\n"


def refusal(scenario: Scenario, message: str) -> str:
    """What Spark refuses, its error, and the rewrite that was measured instead."""
    return (
        f"## What Spark refuses\n\nThe question of {scenario.name}, as written:\n\n"
        f"```sql\n{dedent(scenario.spark_as_written).strip()}\n```\n\nSpark's answer: `{message}`\n\n"
        f"Measured instead is the rewrite that its users fall back on:\n\n"
        f"```sql\n{dedent(scenario.spark).strip()}\n```\n"
    )


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.2f}"
