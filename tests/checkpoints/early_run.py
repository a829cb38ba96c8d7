"""Runs a course by the code of long ago: `python early_run.py COURSE OUT`, with that code on the path.

It imports nothing but midstream and Arrow, because early code knows nothing of the tests of today: the course lies in
the folder COURSE as data. In OUT it leaves what the engine saved, its answers by query and step, and notes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import midstream as ms


def main(course: Path, out: Path) -> None:
    told = json.loads((course / "course.json").read_text())
    engine: Any = ms.Engine(lanes=told["lanes"], sharing=told["sharing"])
    for stream in told["streams"]:
        engine.create_stream(schema=_read(course / f"{stream['name']}.arrow").schema, **stream)
    for step in range(told["steps"]):
        for method, arguments, options in told["calls"].get(str(step), []):
            getattr(engine, method)(*arguments, **options)
        if step == told["saved"]:
            engine.save(out / "checkpoint")
            notes = _notes(engine)
        pushed = {path.stem: _read(path) for path in sorted((course / f"step_{step}").iterdir())}
        for query, table in engine.push(pushed).items():
            _write(out / "answers" / query / f"{step}.arrow", table)
    ended = sorted([e.query, e.strategy] for e in engine.events if type(e).__name__ == "MigrationEnded")
    (out / "notes.json").write_text(json.dumps({**notes, "input": told["input"], "ended": ended}))


def _notes(engine: Any) -> dict[str, Any]:
    metrics = engine.metrics()
    under_way = sorted(query for query in engine.manifest.queries if engine.migration(query))
    return {"under way": under_way, "state rows": metrics["state_rows"], "comparisons": metrics["comparisons"]}


def _read(path: Path) -> pa.Table:
    with pa.ipc.open_file(path) as file:
        return file.read_all()


def _write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
