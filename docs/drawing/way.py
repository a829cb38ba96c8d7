"""A step's way through the rooms: a real step is run and watched, and what calls what is drawn in order."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import Any

import pyarrow as pa

import midstream as ms
from docs.drawing.imports import rooms
from docs.drawing.svg import Drawing

DEEPEST, FEW = 3, 12
"""No station lies deeper than this, and none is a call within which fewer calls happen than this."""
ROW, LEFT, COLUMN, TOP, INDENT = 40, 560, 46, 110, 18


@dataclass
class Call:
    """A public function of the package, called from another module, and what it led to; `rooms` in which code ran."""

    module: str
    name: str
    depth: int
    rooms: set[str] = field(default_factory=set)
    within: list[Call] = field(default_factory=list)
    calls: int = 0

    @property
    def said(self) -> str:
        """The first sentence of its docstring."""
        thing: Any = import_module(self.module)
        for part in self.name.split("."):
            thing = getattr(thing, part)
        text = inspect.getdoc(thing) or ""
        return re.split(r"[.;:]\s", " ".join(text.split()).replace("`", "") + " ")[0] + "."


def watch() -> Call:
    """The calls of one `push`: a step in which a migration begins and a result is found."""
    engine = ms.Engine()
    for stream in "ABC":
        engine.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 20 SECONDS", plan="((A B) C)")
    engine.push({"A": _row(1), "B": _row(3)})
    engine.migrate("q", plan="(A (B C))", strategy="jisc")
    root = Call("midstream.embedded.engine", "Engine.push", 0)
    stack: list[Call] = [root]
    opened: list[bool] = []

    def seen(frame: FrameType, event: str, argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event not in ("call", "return") or not module.startswith("midstream."):
            return
        if event == "return":
            if opened.pop():
                stack.pop()
            return
        name, room = frame.f_code.co_qualname, module.split(".")[1]
        for call in stack:
            call.calls += 1
            call.rooms.add(room)
        new = module != stack[-1].module and not any(part[0] in "_<" for part in name.split("."))
        opened.append(new)
        if new:
            call = Call(module, name, len(stack), {room})
            stack[-1].within.append(call)
            stack.append(call)

    sys.setprofile(seen)
    try:
        results = engine.push({"C": _row(9)})
    finally:
        sys.setprofile(None)
    assert results["q"].num_rows == 1
    return root


def stations(call: Call) -> list[Call]:
    """A call and what it called, each function once; of its calls the one within which most happens is opened too."""
    found: dict[tuple[str, str], Call] = {}
    for inner in call.within:
        first = found.setdefault((inner.module, inner.name), inner)
        first.rooms |= inner.rooms
    weighty = [inner for inner in found.values() if inner.calls >= FEW]
    greatest = max(weighty, key=lambda inner: inner.calls, default=None)
    rows = [call]
    for inner in weighty:
        rows += stations(inner) if inner is greatest and inner.depth < DEEPEST else [inner]
    return rows


def draw() -> str:
    """The picture as SVG: a row for each station, a column for each room, a dot where code of the room runs."""
    found = stations(watch())
    entered = set().union(*(call.rooms for call in found))
    columns = [room for room in reversed(list(rooms())) if room in entered]
    least = min(call.depth for call in found)
    width, height = LEFT + len(columns) * COLUMN + 24, TOP + len(found) * ROW
    sheet = Drawing(width, height, "A step's way through the rooms: what is called, in order, and where code runs")
    for at, room in enumerate(columns):
        x = LEFT + at * COLUMN
        sheet.rule(x, TOP - 8, x, height)
        sheet.slanted(x - 2, TOP - 14, room)
    for at, call in enumerate(found):
        y = TOP + at * ROW + ROW / 2
        sheet.rule(12, y + ROW / 2, width - 12, y + ROW / 2)
        x = 16 + (call.depth - least) * INDENT
        sheet.text(x, y - 3, call.name, 13, bold=True)
        sheet.paragraph(x, y + 12, call.said, int((LEFT - x) / 6.2), 1)
        for column, room in enumerate(columns):
            if room == call.module.split(".")[1]:
                sheet.dot(LEFT + column * COLUMN, y, 8)
            elif room in call.rooms:
                sheet.dot(LEFT + column * COLUMN, y, 4)
    return str(sheet)


def _row(second: int) -> pa.Table:
    return pa.table({"k": [7], "ts": pa.array([second * 1_000_000], pa.timestamp("us"))})
