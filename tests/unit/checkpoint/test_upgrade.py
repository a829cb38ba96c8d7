"""Manifests of format 2 read as this version would have written them."""

from __future__ import annotations

from typing import Any

from midstream.checkpoint.upgrade import upgraded
from midstream.model.codec import decode, encode
from midstream.model.counters import Counters
from midstream.model.language_rules import PRESENT, LanguageRules
from midstream.model.manifest import FORMAT_VERSION, Manifest, QueryEntry
from midstream.model.sharing import Chain, Demand, SharedSource, SourceFilter

OLD: dict[str, Any] = {
    "format": 2,
    **encode(Manifest(job="j", step=7)),
    "queries": {
        "q": {
            "sql": "SELECT", "plan": "(A B)", "since": 1, "group": "single", "sink": None,
            "counters": encode(Counters()), "migrations": {}, "operator": None, "chain": "q.1",
            "wants": {"A": {"holding": "single A x", "filter": "A.k > 1", "size": 5, "reads": ["k", "u"]}},
            "joined": 3, "sees": "new", "exact_from": 9, "apart": True, "spread": [["A", "A.k"]],
        }
    },
    "chains": {
        "q.1": {
            "family": "f", "group": "single", "plan": "(A B)", "streams": ["A", "B"], "holdings": {"A": "single A x"},
            "cuts": [2, 5], "founded": 3, "origin": "(B A)", "formerly": "q", "renamed": 4,
        }
    },
    "holdings": {
        "single A x": {
            "stream": "A", "kind": "range", "founded": 2, "bound": 11, "columns": {"k": 12},
            "filters": {
                "A.k > 1": {
                    "bit": 1, "parts": ["A.k > 1"], "size": 5, "since": 3, "complete": 13, "floor": 14, "blind": True,
                    "counted": 15,
                }
            },
        }
    },
}  # fmt: skip
del OLD["shared_sources"]


def test_what_queries_share_has_its_present_names() -> None:
    manifest = decode(Manifest, upgraded(OLD))
    assert (manifest.job, manifest.step) == ("j", 7)
    assert manifest.queries["q"] == QueryEntry(
        "SELECT", "(A B)", 1, chain="q.1", demands={"A": Demand("single A x", "A.k > 1", 5, ("k", "u"))},
        entered=3, sees="new", exact_from=9, private=True, spread=(("A", "A.k"),),
    )  # fmt: skip
    assert manifest.chains["q.1"] == Chain(
        "f", "single", "(A B)", ("A", "B"), {"A": "single A x"}, (2, 5), 3, "(B A)", "q", 4
    )
    one = SourceFilter(1, ("A.k > 1",), 5, since=3, complete_from=13, kept_from=14, future_only=True, rows_kept=15)
    assert manifest.shared_sources == {
        "single A x": SharedSource("A", "range", 2, purged_to=11, filters={"A.k > 1": one}, columns={"k": 12})
    }


def test_a_job_from_before_a_rule_keeps_the_one_before() -> None:
    written = encode(Manifest(job="j"))
    assert decode(Manifest, upgraded({**written, "format": FORMAT_VERSION})).rules == PRESENT
    del written["edges"]
    assert decode(Manifest, upgraded({**written, "format": FORMAT_VERSION})).rules == LanguageRules(edges=False)
    del written["checked"], written["utc_results"], written["partial_sums"]
    before = decode(Manifest, upgraded({**written, "format": FORMAT_VERSION}))
    assert before.rules == LanguageRules(checked=False, utc_results=True, partial_sums=False, edges=False)
    assert Manifest(job="j").under(before.rules).rules == before.rules and not before.rules.strict


def test_what_this_version_wrote_is_read_as_it_is() -> None:
    manifest = decode(Manifest, upgraded(OLD))
    assert decode(Manifest, upgraded({**encode(manifest), "format": FORMAT_VERSION})) == manifest
