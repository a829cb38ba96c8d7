"""A plan drawn as SVG: sources to the left, results to the right, during a migration both plans."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

COLOURS = {"both": ("#f2f2f2", "#555555"), "old": ("#fdf0d5", "#b35c00"), "new": ("#dceefb", "#0b5fa5")}
"""Of what both plans share, of the old one and of the new one: fill and line; the colour-blind tell them apart."""

LINE, PAD, GAP, BETWEEN, GLYPH = 15, 8, 16, 44, 6.7
"""Pixels: a line of text, around texts, between boxes one below the other, between columns, and a letter's width."""

DASHED, BOLD = ' stroke-dasharray="5 3"', ' font-weight="bold"'

LONGEST = 46
"""Letters of a line; more are cut off."""


def plan_svg(graph: Mapping[str, Any], title: str) -> str:
    """Draw the graph of `plan_graph` as one SVG element with texts and figures. It names no other file and runs
    nothing.

    >>> plan_svg({"nodes": [], "edges": []}, "nothing").startswith("<svg ")
    True
    """
    texts = {node["id"]: _lines(node) for node in graph["nodes"]}
    columns = _columns(graph)
    places: dict[str, tuple[float, float, float, float]] = {}
    left, height = float(PAD), 2.0 * PAD
    for column in columns:
        wide = max(max(len(line) for line in texts[id]) for id in column) * GLYPH + 2 * PAD
        top = float(PAD)
        for id in column:
            tall = len(texts[id]) * LINE + 2 * PAD
            places[id] = (left, top, wide, tall)
            top += tall + GAP
        left, height = left + wide + BETWEEN, max(height, top - GAP + PAD)
    width = max(left - BETWEEN + PAD, 2 * PAD)
    by_id = {node["id"]: node for node in graph["nodes"]}
    arrows = "".join(_arrow(places[e["from"]], places[e["to"]], by_id[e["from"]]) for e in graph["edges"])
    boxes = "".join(_box(place, texts[id], by_id[id]) for id, place in places.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title, quote=True)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="ui-monospace, monospace" font-size="11">{arrows}{boxes}</svg>'
    )


def _columns(graph: Mapping[str, Any]) -> list[list[str]]:
    # By how many joins are below them, each node as far right as its inputs need.
    depth: dict[str, int] = {}
    below: dict[str, list[str]] = {}
    for edge in graph["edges"]:
        below.setdefault(edge["to"], []).append(edge["from"])
    for node in graph["nodes"]:  # Children come first.
        depth[node["id"]] = max((depth[child] + 1 for child in below.get(node["id"], ())), default=0)
    found: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for id, at in depth.items():
        found[at].append(id)
    return found


def _lines(node: Mapping[str, Any]) -> list[str]:
    counters = node["counters"]
    lines = [node["label"].replace("window_join ", "join ", 1)]
    if node["kind"] == "source":
        lines.append(f"{counters['rows_out']:,} rows")
    elif node["kind"] != "transition":
        lines.append(f"{counters['comparisons']:,} comparisons, {counters['rows_out']:,} rows out")
    for state in node["states"]:
        name = state["name"].replace(" (of a plan in transition)", "")
        lines.append(f"{'▪' if state['complete'] else '▫'} {name}: {state['rows']:,} rows" + _of_state(state))
    return [line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines]


def _of_state(state: Mapping[str, Any]) -> str:
    return ", not complete" if not state["complete"] else ", shared" if len(state["plans"]) == 2 else ""


def _side(node: Mapping[str, Any]) -> str:
    return str(node["plans"][0]) if len(node["plans"]) == 1 else "both"


def _box(place: tuple[float, float, float, float], lines: list[str], node: Mapping[str, Any]) -> str:
    left, top, wide, tall = place
    fill, line = COLOURS[_side(node)]
    side = "" if _side(node) == "both" else f"{_side(node)} plan: "
    texts = "".join(
        f'<text x="{left + PAD:.1f}" y="{top + PAD + LINE * at + 11:.1f}" fill="#111111"'
        f"{BOLD if at == 0 else ''}>{escape(text)}</text>"
        for at, text in enumerate(lines)
    )
    return (
        f"<g><title>{escape(side + node['label'])}</title>"
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}" rx="4" fill="{fill}" '
        f'stroke="{line}"{DASHED if _side(node) == "old" else ""}/>{texts}</g>'
    )


def _arrow(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float], node: Mapping[str, Any]
) -> str:
    (x, y, wide, tall), (to_x, to_y, _, to_tall) = one, other
    begin, end = (x + wide, y + tall / 2), (to_x, to_y + to_tall / 2)
    bend = (begin[0] + end[0]) / 2
    dashed = DASHED if _side(node) == "old" else ""
    return (
        f'<path d="M{begin[0]:.1f} {begin[1]:.1f}C{bend:.1f} {begin[1]:.1f} {bend:.1f} {end[1]:.1f} '
        f'{end[0]:.1f} {end[1]:.1f}" fill="none" stroke="{COLOURS[_side(node)][1]}"{dashed}/>'
    )
