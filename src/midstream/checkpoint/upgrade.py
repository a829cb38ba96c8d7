"""Manifests that older versions of midstream wrote, as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
"""Fields by their names in format 2, and what they are called since."""

Document = Mapping[str, Any]


def upgraded(document: Document) -> dict[str, Any]:
    """The manifest in a document of any readable format, as this version would have written it.

    Before format 4 there were no epochs. Format 2 wrote out every field of every value, those at their default
    included; they read as they are. What queries share had other names there.
    """
    manifest = {name: value for name, value in document.items() if name != "format"}
    if document["format"] < 4:
        manifest = {**manifest, "epochs": []}
    return _from_format_2(manifest) if document["format"] == 2 else manifest


def _from_format_2(manifest: Document) -> dict[str, Any]:
    queries = {
        name: _renamed(query, QUERY)
        | {"demands": {a: _renamed(demand, DEMAND) for a, demand in query["wants"].items()}}
        for name, query in manifest["queries"].items()
    }
    chains = {name: _renamed(chain, CHAIN) for name, chain in manifest["chains"].items()}
    sources = {
        name: _renamed(source, SOURCE) | {"filters": {t: _renamed(one, FILTER) for t, one in source["filters"].items()}}
        for name, source in manifest["holdings"].items()
    }
    return _renamed(manifest, MANIFEST) | {"queries": queries, "chains": chains, "shared_sources": sources}


def _renamed(value: Document, names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): item for name, item in value.items()}
