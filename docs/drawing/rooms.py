"""The rooms, floor by floor, and who stands on whom."""

from __future__ import annotations

from docs.drawing.imports import Graph, essential, room_imports, rooms, upward
from docs.drawing.svg import FLOOR, Drawing
from tests.test_architecture import circles, layer_of

WIDTH, ROW, ARCS, GAP, LINE = 1000, 46, 270, 10, 100


def draw() -> str:
    """The picture as SVG; an import that runs up or in a circle cannot be drawn."""
    graph, said = room_imports(), rooms()
    if wrong := upward(graph) or circles({room: set(others) for room, others in graph.items()}):
        raise ValueError(f"imports run downwards and in no circle, but not these: {wrong}")
    listed = _from_the_top(graph)
    middle = {room: _top(listed, room) + ROW / 2 for room in listed}
    sheet = Drawing(WIDTH, int(_top(listed, listed[-1]) + ROW + GAP), "The rooms of midstream, and who imports whom")
    for floor in sorted({layer_of(room) for room in listed}):
        mates = [room for room in listed if layer_of(room) == floor]
        top = _top(listed, mates[0])
        sheet.box(ARCS, top, WIDTH - ARCS - GAP, len(mates) * ROW, FLOOR, edge="none")
    first = essential(graph)
    for faint in (True, False):
        for room in listed:
            for other in sorted(graph[room]):
                if (other not in first[room]) == faint:
                    sheet.arc(ARCS - 2, middle[room] + 4, middle[other] - 4, ARCS - 24, faint)
    for room in listed:
        sheet.text(ARCS + 14, middle[room] + 5, room, 15, bold=True)
        sheet.paragraph(ARCS + 120, middle[room] + (4 if len(said[room]) <= LINE else -3), said[room], LINE, 2)
    return str(sheet)


def _top(listed: list[str], room: str) -> float:
    floors = len({layer_of(other) for other in listed if layer_of(other) > layer_of(room)})
    return GAP + listed.index(room) * ROW + floors * GAP


def _from_the_top(graph: Graph) -> list[str]:
    """The rooms by floor, and on a floor those that stand on others first."""
    depth: dict[str, int] = {}

    def rank(room: str) -> int:
        if room not in depth:
            mates = [other for other in graph[room] if layer_of(other) == layer_of(room)]
            depth[room] = max((rank(mate) + 1 for mate in mates), default=0)
        return depth[room]

    return sorted(graph, key=lambda room: (-layer_of(room), -rank(room), room))
