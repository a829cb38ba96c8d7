"""Writes the checkpoints with the code that is imported: `python -m tests.checkpoints.make FORMAT [NAME]...`.

Run it in a working copy of the commit whose checkpoints are to be kept, with this folder copied into it. Those in
`format_2` were written by the last code before the middle of the engine was rebuilt (commit 64aad94).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from tests.checkpoints.course import Course, ended, fingerprint, rebuilt
from tests.checkpoints.courses import courses
from tests.checkpoints.kept import CHECKPOINT, archive, pack


def make(name: str, course: Course, target: Path) -> None:
    """Save an engine before its step and keep it; what the engine answered that went on undisturbed is kept beside."""
    engine, steps = course.begin(), range(len(course.case.steps))
    answers: dict[str, dict[int, pa.Table]] = {}
    for step in steps:
        course.command(engine, step)
        if step == course.saved:
            with tempfile.TemporaryDirectory() as folder:
                engine.save(Path(folder) / "saved")
                saved = {
                    path.relative_to(Path(folder) / "saved"): path.read_bytes()
                    for path in (Path(folder) / "saved").rglob("*")
                    if path.is_file()
                }
            under_way = {query for query in engine.manifest.queries if engine.migration(query)}
            print(f"{name}: under way {sorted(under_way)}")
            assert course.under_way <= under_way, f"{name}: done are {sorted(course.under_way - under_way)}"
            assert any(table.num_rows for table in engine.late.values())
            assert any(table.num_rows for table in engine.dead_letters.values())
            metrics = engine.metrics()
        for query, table in engine.push(dict(course.case.steps[step])).items():
            answers.setdefault(query, {})[step] = table
    notes = {
        "input": fingerprint(course.case.steps),
        "state rows": metrics["state_rows"],
        "comparisons": metrics["comparisons"],
        "under way": sorted(under_way),
        "ended": ended(engine),
        "rebuilt": rebuilt(engine, course.saved),
    }
    with tempfile.TemporaryDirectory() as folder:
        for path, content in saved.items():
            (Path(folder) / CHECKPOINT / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / CHECKPOINT / path).write_bytes(content)
        pack(target, Path(folder), answers, notes)
    counts = {query: sum(table.num_rows for table in steps.values()) for query, steps in answers.items()}
    print(f"  {target.stat().st_size} bytes, answers {counts}")


if __name__ == "__main__":
    for name, course in courses().items():
        if name in sys.argv[2:] or not sys.argv[2:]:
            make(name, course, archive(name, int(sys.argv[1])))
