"""A predicate that costs something to ask: how far two places lie apart, along a great circle; the demo's own."""

from __future__ import annotations

from midstream.demo.acts import kilometres
from midstream.demo.flights import declare_within_km

declare_within_km()

WITHIN_KM_SQL = f"{kilometres('{lat}', '{lon}', '{lat2}', '{lon2}')} <= {{most}}"
"""The same in the words that DuckDB and Spark have in common."""
