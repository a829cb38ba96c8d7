"""Writes the checkpoints of early code: `python -m tests.checkpoints.early TREE [NAME]...`.

TREE is a working copy of the commit in question. The courses are run by `early_run.py`, on its own, by the code there,
and kept as `format_N/NAME_at_COMMIT`; `spark` is the course `held` as a job, which is killed amid it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.checkpoints.course import Course, fingerprint
from tests.checkpoints.courses import CROSSED, LEFT, RIGHT, ROWS, case, counts, difference, member, single
from tests.checkpoints.kept import ROOT, pack, relocate
from tests.oracle.spec import duration
from tests.property.drive import Rescale
from tests.sharing.case import Action, Add, Change, Drop, Move
from tests.spark.drive import Place
from tests.spark.shared_case import feed

SAVED = 5
"""The step before which the engine is saved."""

QUERIES = (
    Add(0, "whole", member("k", 5, plan=LEFT)),
    Add(0, "filtered", member("k", 4, "A.n > 1", plan=LEFT)),
    Add(0, "moves", member("n", 6, "B.k > 0", plan=LEFT)),
    Add(0, "alone", member("kn", 5, plan=LEFT)),
    Add(0, "pair", member("s", 4, names="AB")),
    Add(0, "numbered", member("k", 9, rows=True, plan=LEFT)),
    Add(0, "counts", counts("ABC", 4, plan=LEFT)),
    Add(0, "except", difference("A", "C", 5)),
    Add(0, "single", single()),
)
WAITING = (
    Move(SAVED, "whole", RIGHT, "moving_state"),
    Add(SAVED, "waits", member("s", 6, "C.k > 0", names="BC")),
    Drop(6, "single"),
    Rescale(6, 3),
)


def courses() -> dict[str, Course]:
    """What early code could do: at first all state moved at once, then migrations lasted for several steps."""
    lasting = (Move(3, "moves", RIGHT, "hybmig"), Move(4, "alone", CROSSED, "gpt"))
    held = (Move(3, "moves", RIGHT, "parallel_track"), Move(4, "alone", RIGHT, "jisc", {"background": 1}))
    held = (*held, Move(3, "counts", CROSSED, "ghm", {"budget": 2}))
    at_once = (Move(4, "moves", RIGHT, "moving_state"),)
    return {
        "at_once": _course(at_once),
        "lasting": _course(lasting, "moves", "alone"),
        "held": _course(held, "moves", "alone", "counts"),
        "off": _course(held, "moves", "alone", "counts", sharing="off"),
    }


def _course(moves: tuple[Move, ...], *under_way: str, sharing: str = "auto") -> Course:
    made = replace(case(ROWS, *QUERIES, *moves, *WAITING), sharing=sharing, lanes=2)
    return Course(made, SAVED, frozenset(under_way))


def write(course: Course, folder: Path) -> None:
    """A course as data, for code that knows nothing of courses."""
    calls: dict[int, list[tuple[str, tuple[Any, ...], Mapping[str, Any]]]] = {}
    for action in course.case.actions:
        calls.setdefault(action.step, []).append(_call(action))
    streams = [
        {
            "name": stream.name,
            "timestamp": stream.timestamp,
            "lateness": duration(stream.lateness).lower(),
            "idle_timeout": None,
        }
        for stream in course.case.streams
    ]
    for stream in course.case.streams:
        _write(folder / f"{stream.name}.arrow", stream.schema.empty_table())
    for number, step in enumerate(course.case.steps):
        for name, table in step.items():
            _write(folder / f"step_{number}" / f"{name}.arrow", table)
    told = {
        "lanes": course.case.lanes, "sharing": course.case.sharing, "streams": streams, "calls": calls,
        "steps": len(course.case.steps), "saved": course.saved, "input": fingerprint(course.case.steps),
    }  # fmt: skip
    (folder / "course.json").write_text(json.dumps(told))


def _call(action: Action) -> tuple[str, tuple[Any, ...], Mapping[str, Any]]:
    match action:
        case Add(_, query, asked):
            return "add_query", (query, asked.spec.cql()), {"plan": asked.plan}
        case Drop(_, query):
            return "drop_query", (query,), {}
        case Change(_, query, asked):
            return "change_query", (query, asked.spec.cql()), {}
        case Move(_, query, plan, strategy, options):
            return "migrate", (query, plan, strategy), dict(options)
        case Rescale(_, lanes):
            return "rescale", (lanes,), {}
    raise TypeError(action)


def make(name: str, course: Course, tree: Path) -> None:
    """Run a course by the code in a tree, and keep what it saved and answered."""
    commit = subprocess.check_output(["git", "rev-parse", "--short=7", "HEAD"], cwd=tree, text=True).strip()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        data, out = Path(first), Path(second)
        write(course, data)
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        runner = Path(__file__).with_name("early_run.py")
        subprocess.run([sys.executable, runner, data, out], env=environment, check=True)
        notes = json.loads((out / "notes.json").read_text())
        assert course.under_way <= set(notes["under way"]), notes
        answers: dict[str, dict[int, pa.Table]] = {}
        for path in sorted((out / "answers").rglob("*.arrow"), key=lambda path: int(path.stem)):
            answers.setdefault(path.parent.name, {})[int(path.stem)] = pa.ipc.open_file(path).read_all()
        shutil.rmtree(out / "answers")
        (out / "notes.json").unlink()
        manifest = next((out / "checkpoint" / "manifests").glob("*.json"))
        version = json.loads(manifest.read_text())["format"]
        target = Path(__file__).parent / f"format_{version}" / f"{name}_at_{commit}.tar.xz"
        pack(target, out, answers, notes)
        print(target.name, target.stat().st_size, {q: sum(t.num_rows for t in a.values()) for q, a in answers.items()})


def make_spark(course: Course, tree: Path) -> None:
    """Run a course as a job, kill it before the results of a step are in the sinks, and keep what is there."""
    commit = subprocess.check_output(["git", "rev-parse", "--short=7", "HEAD"], cwd=tree, text=True).strip()
    runner = Path(__file__).with_name("early_spark_run.py")
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        folder, kept = Path(first), Path(second)
        write(course, folder)
        feed(folder, course.case)
        killed = {**environment, "MIDSTREAM_KILL_AT": f"after_manifest:{SAVED - 1}"}
        assert subprocess.run([sys.executable, runner, folder], env=killed).returncode == -signal.SIGKILL
        entries = Place(folder).manifest().queries
        under_way = sorted(query for query, entry in entries.items() if entry.migrations)
        assert course.under_way <= set(under_way), under_way
        for part in ("checkpoint", "answers"):
            shutil.copytree(folder / part, kept / part)
        relocate(kept, str(folder), ROOT)
        notes = {"input": fingerprint(course.case.steps), "under way": under_way}
        pack(Path(__file__).parent / "format_1" / f"spark_at_{commit}.tar.xz", kept, {}, notes)


def _write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)


if __name__ == "__main__":
    if sys.argv[2:] == ["spark"]:
        make_spark(courses()["held"], Path(sys.argv[1]))
    for name, course in courses().items():
        if name in sys.argv[2:] or not sys.argv[2:]:
            make(name, course, Path(sys.argv[1]))
