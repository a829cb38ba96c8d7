"""Run an engine over a case, with things happening at its steps, and print a case as a program of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import note

import midstream as ms
from tests.oracle.answer import Answer, answers
from tests.oracle.arrival import Lifetime, Step
from tests.oracle.compare import assert_ordered, assert_same
from tests.oracle.spec import StreamSpec


@dataclass(frozen=True)
class Case:
    """What is pushed and what is asked; `in_order`: rows come in order of time over all streams, none is late."""

    streams: tuple[StreamSpec, ...]
    steps: tuple[Step, ...]
    queries: tuple[Lifetime, ...]
    in_order: bool = False

    def expected(self) -> dict[str, Answer]:
        """The oracle's answers."""
        return answers(self.streams, self.steps, self.queries)


@dataclass(frozen=True)
class Migrate:
    """Before a step: migrate a query."""

    step: int
    query: str
    plan: str
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rescale:
    """Before a step: spread over another number of lanes."""

    step: int
    lanes: int


@dataclass(frozen=True)
class Restart:
    """Before a step: save, lose the engine (`crash`: amid the step, whose results are lost too), load."""

    step: int
    crash: bool = False


@dataclass(frozen=True)
class Spread:
    """Before a step: spread a query over so many nodes, or take it back to lanes."""

    step: int
    query: str
    scheme: str
    nodes: int | None = None


Action = Migrate | Rescale | Restart | Spread


@dataclass
class Run:
    """What came out: for each query one table for each step it lived, and the engine as it stood at the end."""

    engine: ms.Engine
    outputs: dict[str, list[pa.Table]] = field(default_factory=dict)
    refused: list[Migrate] = field(default_factory=list)


def run(
    case: Case,
    plans: Mapping[str, str] | None = None,
    actions: Sequence[Action] = (),
    *,
    lanes: int = 1,
    sharing: str = "auto",
    last: int | None = None,
) -> Run:
    """Push the steps (up to `last`) through a new engine; before its step an action is done, a query comes or goes."""
    engine = start(case.streams, lanes=lanes, sharing=sharing)
    found = Run(engine)
    for number, step in enumerate(case.steps if last is None else case.steps[:last]):
        for query in case.queries:
            if query.until == number and query.since < number:
                engine.drop_query(query.name)
            if query.since == number and query.until != number:
                engine.add_query(query.name, query.spec.cql(), plan=(plans or {}).get(query.name), history=False)
                found.outputs[query.name] = []
        for action in actions:
            if action.step == number:
                engine = _act(engine, action, step, found)
        for name, table in engine.push(dict(step)).items():
            found.outputs[name].append(table)
    found.engine = engine
    return found


def start(
    streams: Sequence[StreamSpec], *, lanes: int = 1, sharing: str = "auto", checkpoint: str | None = None
) -> ms.Engine:
    """An engine that knows the streams."""
    engine = ms.Engine(seed=0, sharing=sharing, lanes=lanes, checkpoint=checkpoint)
    for spec in streams:
        engine.create_stream(
            spec.name,
            spec.schema,
            timestamp=spec.timestamp,
            lateness=spec.lateness,
            idle_timeout=spec.idle_timeout,
            unit=spec.unit,
        )
    return engine


def _act(engine: ms.Engine, action: Action, step: Step, found: Run) -> ms.Engine:
    if isinstance(action, Rescale):
        engine.rescale(lanes=action.lanes)
    elif isinstance(action, Spread):
        engine.spread(action.query, action.scheme, nodes=action.nodes)
    elif isinstance(action, Migrate):
        try:
            engine.migrate(action.query, plan=action.plan, strategy=action.strategy, **action.options)
        except ms.StrategyError:
            found.refused.append(action)
    else:
        return restarted(engine, step, crash=action.crash)
    return engine


def restarted(engine: ms.Engine, step: Step, *, crash: bool) -> ms.Engine:
    """The engine that is started again from what was saved before a step, which it may have taken before it crashed."""
    folder = Path(tempfile.mkdtemp(prefix="midstream-test-"))
    try:
        engine.save(folder / "saved")
        if crash:
            engine.push(dict(step))
        del engine
        return ms.Engine.load(folder / "saved")
    finally:
        shutil.rmtree(folder)


def check(
    case: Case,
    expected: Mapping[str, Answer],
    plans: Mapping[str, str] | None = None,
    actions: Sequence[Action] = (),
    *,
    lanes: int = 1,
    sharing: str = "auto",
    label: str = "",
) -> Run:
    """Run a case and fail unless every query's output is its answer, in order."""
    try:
        found = run(case, plans, actions, lanes=lanes, sharing=sharing)
        for name, answer in expected.items():
            assert_same(found.outputs.get(name, []), answer, f"{label} {name}".strip())
            assert_ordered(found.outputs.get(name, []), throughout=case.in_order, label=f"{label} {name}".strip())
    except Exception:
        note(script(case, plans, actions, lanes=lanes, sharing=sharing))
        raise
    return found


def script(
    case: Case,
    plans: Mapping[str, str] | None = None,
    actions: Sequence[Action] = (),
    *,
    lanes: int = 1,
    sharing: str = "auto",
) -> str:
    """A program that does the same with midstream alone and says what each step puts out."""
    lines = ["import datetime, tempfile", "from decimal import Decimal", "import pyarrow as pa, midstream as ms", ""]
    lines += ["nan = float('nan')", f"engine = ms.Engine(seed=0, sharing={sharing!r}, lanes={lanes})"]
    for spec in case.streams:
        fields = ", ".join(f"({f.name!r}, {_type(f.type)})" for f in spec.schema)
        lines.append(f"{spec.name} = pa.schema([{fields}])")
        lines.append(
            f"engine.create_stream({spec.name!r}, {spec.name}, timestamp={spec.timestamp!r}, lateness={spec.lateness}, "
            f"idle_timeout={spec.idle_timeout})"
        )
    for number, step in enumerate(case.steps):
        for query in case.queries:
            if query.until == number and query.since < number:
                lines.append(f"engine.drop_query({query.name!r})")
            if query.since == number and query.until != number:
                plan = (plans or {}).get(query.name)
                lines.append(
                    f'engine.add_query({query.name!r}, """{query.spec.cql()}""", plan={plan!r}, history=False)'
                )
        tables = []
        for name, rows in step.items():
            schema = next(s for s in case.streams if s.name == name).schema
            columns = []
            for values, type_ in zip(rows.columns, schema.types, strict=True):
                time = pa.types.is_timestamp(type_)
                shown = values.cast(pa.int64()) if time else values
                columns.append(f"pa.array({shown.to_pylist()!r}, {_type(type_)})")
            tables.append(f"{name!r}: pa.table([{', '.join(columns)}], schema={name})")
        lines.append(f"step = {{{', '.join(tables)}}}")
        for action in actions:
            if action.step == number:
                lines += _action_lines(action)
        lines.append(f"print({number}, {{name: t.to_pylist() for name, t in engine.push(step).items()}})")
    return "\n".join(lines)


def _action_lines(action: Action) -> list[str]:
    if isinstance(action, Rescale):
        return [f"engine.rescale(lanes={action.lanes})"]
    if isinstance(action, Spread):
        return [f"engine.spread({action.query!r}, {action.scheme!r}, nodes={action.nodes})"]
    if isinstance(action, Migrate):
        options = "".join(f", {name}={value!r}" for name, value in action.options.items())
        return [f"engine.migrate({action.query!r}, plan={action.plan!r}, strategy={action.strategy!r}{options})"]
    lost = ["engine.push(step)"] if action.crash else []
    return ["path = tempfile.mkdtemp() + '/saved'", "engine.save(path)", *lost, "engine = ms.Engine.load(path)"]


def _type(type_: pa.DataType) -> str:
    if pa.types.is_timestamp(type_):
        return f"pa.timestamp({type_.unit!r}, {type_.tz!r})"
    if pa.types.is_decimal(type_):
        return f"pa.decimal128({type_.precision}, {type_.scale})"
    names = {"double": "float64", "bool": "bool_", "date32[day]": "date32"}
    return f"pa.{names.get(str(type_), str(type_))}()"
