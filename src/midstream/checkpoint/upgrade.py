"""Manifests that older versions of midstream wrote, as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.model.codec import encode
from midstream.model.optimization import OFF

MANIFEST = {"holdings": "shared_sources"}
QUERY = {"wants": "demands", "joined": "entered", "apart": "private"}
DEMAND = {"holding": "source", "reads": "columns"}
CHAIN = {
    "holdings": "sources",
    "founded": "since",
    "origin": "split_from",
    "formerly": "former_name",
    "renamed": "renamed_in",
}
SOURCE = {"founded": "since", "bound": "purged_to"}
FILTER = {
    "parts": "conjuncts",
    "complete": "complete_from",
    "floor": "kept_from",
    "blind": "future_only",
    "counted": "rows_kept",
}
RECORD = {"old": "old_serves", "new": "new_serves"}
"""Fields by their former names, and what they are called since."""

ADDED: Mapping[str, Any] = {
    "optimizer": encode(OFF), "optimizations": {}, "lane_optimization": {}, "still": False,
    "tables": {}, "held_in": 0,
}  # fmt: skip
"""Fields that came with format 4 or later, with what they are for a job that knew nothing of them."""

Document = Mapping[str, Any]


def upgraded(document: Document) -> dict[str, Any]:
    """The manifest in a document of any format, as this version would have written it.

    Format 1 knew no chains, and before format 4 there were no epochs. Formats before 3 wrote out every field of every
    value, those at their default included; they read as they are. What queries share got its present names amid
    format 3, so there the fields that a value has tell which of both it is.
    """
    manifest = {name: value for name, value in document.items() if name != "format"}
    if document["format"] == 1:
        manifest = _with_chains(manifest)
    if document["format"] < 4:
        manifest = {**_with_present_names(manifest), "epochs": []}
    return {**ADDED, **manifest}


def _with_chains(manifest: Document) -> dict[str, Any]:
    """Queries shared the states that were equal; with `off`, every query had its own."""
    private = manifest["sharing"] == "off"
    lanes = {name: {**lane, "boxes": _boxes(lane["boxes"])} for name, lane in manifest["lane_states"].items()}
    queries = {
        name: {**query, "private": private, "migrations": _records(query, name, lanes)}
        for name, query in manifest["queries"].items()
    }
    shared = {"chains": {}, "shared_sources": {}, "reshared": 0}
    return {**manifest, **shared, "queries": queries, "lane_states": lanes}


def _boxes(boxes: Document) -> dict[str, Any]:
    """At first the entries of HybMig's table were only the numbers below which rows of the sources are old."""
    return {name: _running(box) for name, box in boxes.items()}


def _running(box: Document) -> dict[str, Any]:
    return {**box, "placed": [_placed(one) for one in box["placed"]]} if "placed" in box else dict(box)


def _placed(placed: Document) -> dict[str, Any]:
    task, old = placed["task"], placed["old"]
    memory = task["memory"]
    if "table" in memory:
        table = [one if "join" in one else {"join": sorted(one), "old": one} for one in memory["table"]]
        memory = {**memory, "table": table}
    return {**placed, "task": {**task, "memory": memory}, "old": old and _running(old)}


def _records(query: Document, name: str, lanes: Document) -> dict[str, Any]:
    """At first a record had what both plans serve in the place of the old plan's notation."""
    records = query.get("migrations", {})
    boxes = [box for lane in lanes.values() if (box := lane["boxes"].get(name)) is not None]
    plans = {one["mark"]: one["old"]["plan"] for box in boxes for one in box.get("placed", ()) if one["old"]}
    return {
        mark: {**_renamed(record, RECORD), "old": plans.get(mark, query["plan"])} if "new" in record else record
        for mark, record in records.items()
    }


def _with_present_names(document: Document) -> dict[str, Any]:
    manifest = _renamed(document, MANIFEST)
    queries = {name: _renamed(query, QUERY) for name, query in manifest["queries"].items()}
    for query in queries.values():
        query["demands"] = {label: _renamed(demand, DEMAND) for label, demand in query.get("demands", {}).items()}
    chains = {name: _renamed(chain, CHAIN) for name, chain in manifest["chains"].items()}
    sources = {name: _renamed(source, SOURCE) for name, source in manifest["shared_sources"].items()}
    for source in sources.values():
        source["filters"] = {text: _renamed(one, FILTER) for text, one in source.get("filters", {}).items()}
    return {**manifest, "queries": queries, "chains": chains, "shared_sources": sources}


def _renamed(value: Document, names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): item for name, item in value.items()}
