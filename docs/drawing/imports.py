"""Which room imports which, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import TopologicalSorter

from tests.test_architecture import LAYERS, MODULES, layer_of, module_imports, room_of

Graph = Mapping[str, frozenset[str]]
LID = {"__init__", "__main__"}
"""What a user imports the house by: no room, and the topmost rooms may use it as any user does."""


def rooms() -> dict[str, str]:
    """Every room, from the ground floor up, with the first sentence of what its docstring says."""
    docs = {m.room: ast.get_docstring(m.tree) or "" for m in MODULES if _is_door(m.name)}
    order = [room for floor in LAYERS for room in sorted(floor) if room not in LID]
    return {room: " ".join(docs[room].split("\n\n")[0].replace("`", "").split()) for room in order}


def room_imports() -> Graph:
    """For each room the others it imports."""
    found: dict[str, set[str]] = {room: set() for room in rooms()}
    for module, others in module_imports().items():
        room = room_of(module) or ""
        found.setdefault(room, set()).update(other for name in others if (other := room_of(name)) is not None)
    return {room: frozenset(found[room] - LID - {room}) for room in rooms()}


def upward(graph: Graph) -> list[tuple[str, str]]:
    """The imports of rooms that run to a floor above."""
    return [(a, b) for a, reached in graph.items() for b in sorted(reached) if layer_of(b) > layer_of(a)]


def essential(graph: Graph) -> dict[str, list[str]]:
    """The imports that no path of others stands for: the least arrows that still say who lies above whom.

    >>> essential({"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset()})
    {'a': ['b'], 'b': ['c'], 'c': []}
    """
    below: dict[str, frozenset[str]] = {}
    for name in TopologicalSorter(graph).static_order():
        below[name] = graph[name].union(*(below[other] for other in graph[name]))
    return {
        name: [b for b in sorted(reached) if not any(b in below[other] for other in reached)]
        for name, reached in graph.items()
    }


def _is_door(module: str) -> bool:
    return module.count(".") == 1
