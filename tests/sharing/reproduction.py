"""A case that fails is made smaller, and written as a program of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from tests.oracle.arrival import Step
from tests.property.drive import Rescale, Restart, _action_lines, _type
from tests.sharing.case import Action, Add, Case, Change, Drop, Move, Reshare
from tests.sharing.drive import run
from tests.sharing.judge import Judge

PATIENCE = 1500
"""So many smaller cases are tried."""

Check = Callable[[Case], object]


def check(case: Case) -> object:
    """Run a case and fail unless all is as promised."""
    return Judge(case, run(case)).check()


def fails(case: Case, by: Check = check) -> str:
    """What goes wrong; empty if nothing does."""
    try:
        by(case)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def reduced(case: Case, by: Check = check) -> Case:
    """A case that fails in the same manner, with less in it."""
    kind, tried, again = _kind(fails(case, by)), 0, True
    while again and tried < PATIENCE:
        again = False
        for candidate in _lesser(case):
            tried += 1
            if _kind(fails(candidate, by)) == kind:
                case, again = candidate, True
                break
            if tried >= PATIENCE:
                break
    return case


def _kind(problem: str) -> str:
    """What goes wrong without its figures."""
    return re.sub(r"\d+|\bin part\b", "", problem.splitlines()[0] if problem else "").split("[")[0]


def reproduction(case: Case, by: Check = check) -> str:
    """The smaller case as a program that prints what each step puts out, and what is wrong with it."""
    smaller = reduced(case, by)
    return f"{script(smaller)}\n# {'# '.join(fails(smaller, by).splitlines(keepends=True))}\n"


def _lesser(case: Case) -> Iterator[Case]:
    """Cases with a little less: a query, an action, lanes, rows, steps."""
    for query in dict.fromkeys(getattr(a, "query", None) for a in case.actions):
        if query is not None:
            yield replace(case, actions=tuple(a for a in case.actions if getattr(a, "query", None) != query))
    for at in range(len(case.actions)):
        yield replace(case, actions=(*case.actions[:at], *case.actions[at + 1 :]))
    if case.lanes > 1:
        yield replace(case, lanes=1)
    for number, tables in enumerate(case.steps):
        if not any(table.num_rows for table in tables.values()):
            yield _without_step(case, number)
    for number, tables in enumerate(case.steps):
        for stream, table in tables.items():
            half = table.num_rows // 2
            pieces = [table.slice(0, 0), table.slice(0, half), table.slice(half)] if table.num_rows > 2 else []
            pieces += [_without(table, gone) for gone in range(table.num_rows)] if table.num_rows <= 6 else []
            yield from (_with_table(case, number, stream, piece) for piece in pieces)
    if len(case.streams) > 2:
        for spec in case.streams:
            steps = tuple({n: t for n, t in tables.items() if n != spec.name} for tables in case.steps)
            yield replace(case, steps=steps, streams=tuple(s for s in case.streams if s is not spec))


def _without(table: pa.Table, gone: int) -> pa.Table:
    return pa.concat_tables([table.slice(0, gone), table.slice(gone + 1)])


def _with_table(case: Case, step: int, stream: str, table: pa.Table) -> Case:
    steps: list[Step] = [dict(tables) for tables in case.steps]
    steps[step] = {**steps[step], stream: table}
    return replace(case, steps=tuple(steps))


def _without_step(case: Case, gone: int) -> Case:
    actions = tuple(replace(a, step=a.step - 1) if a.step > gone else a for a in case.actions)
    return replace(case, steps=(*case.steps[:gone], *case.steps[gone + 1 :]), actions=actions)


def script(case: Case) -> str:
    """A program that does the same with midstream alone and says what each step puts out."""
    lines = ["import datetime, tempfile", "from decimal import Decimal", "import pyarrow as pa, midstream as ms", ""]
    lines += ["nan, inf = float('nan'), float('inf')"]
    lines += [f"engine = ms.Engine(seed=0, sharing={case.sharing!r}, lanes={case.lanes})"]
    for spec in case.streams:
        fields = ", ".join(f"({f.name!r}, {_type(f.type)})" for f in spec.schema)
        lines.append(f"{spec.name} = pa.schema([{fields}])")
        lines.append(
            f"engine.create_stream({spec.name!r}, {spec.name}, timestamp={spec.timestamp!r}, lateness={spec.lateness}, "
            f"idle_timeout={spec.idle_timeout})"
        )
    for number, step in enumerate(case.steps):
        lines.append(f"step = {{{', '.join(_table(name, table) for name, table in step.items())}}}")
        for action in case.actions:
            if action.step == number:
                lines += _lines(action)
        lines.append(f"print({number}, {{name: t.to_pylist() for name, t in engine.push(step).items()}})")
    lines.append("print(*(e for e in engine.events if e.kind in ('query_added', 'query_changed')), sep='\\n')")
    return "\n".join(lines)


def _table(name: str, table: pa.Table) -> str:
    if not table.num_rows:
        return f"{name!r}: {name}.empty_table()"
    columns = []
    for values, type_ in zip(table.columns, table.schema.types, strict=True):
        shown = values.cast(pa.int64()) if pa.types.is_timestamp(type_) else values
        columns.append(f"pa.array({shown.to_pylist()!r}, {_type(type_)})")
    return f"{name!r}: pa.table([{', '.join(columns)}], schema={name})"


def _lines(action: Action) -> list[str]:
    match action:
        case Add(_, query, asked, history):
            more = "" if history else ", history=False"
            return [f'engine.add_query({query!r}, """{asked.spec.cql()}""", plan={asked.plan!r}{more})']
        case Drop(_, query):
            return [f"engine.drop_query({query!r})"]
        case Change(_, query, asked):
            return [f'engine.change_query({query!r}, """{asked.spec.cql()}""")']
        case Move(_, query, plan, strategy, options, together):
            more = "".join(f", {name}={value!r}" for name, value in options.items())
            more += ", together=True" if together else ""
            return [f"engine.migrate({query!r}, plan={plan!r}, strategy={strategy!r}{more})"]
        case Reshare(_, sharing):
            return [f"engine.reshare({sharing!r})"]
        case Rescale() | Restart():
            return _action_lines(action)
    raise TypeError(action)
