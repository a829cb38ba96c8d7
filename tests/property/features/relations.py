"""ISTREAM, DSTREAM and RSTREAM over joins, and over the windows of one stream."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.oracle.spec import SECOND, TIME, Item, QuerySpec
from tests.property.queries import queries


@st.composite
def relations(draw: st.DrawFn, *words: str) -> QuerySpec:
    """A query with one of these operators that selects the time too; RSTREAM asks EVERY so often."""
    spec, word = draw(queries("ABC", kinds=("join", "join", "single"), sources=3)), draw(st.sampled_from(words))
    if any(source.range is None and source.rows is None for source in spec.sources) and spec.window is None:
        spec = replace(spec, window=draw(st.sampled_from((0, 2, 5))) * SECOND)
    every = draw(st.sampled_from((1, 2, 3, 7))) * SECOND if word == "RSTREAM" else None
    return replace(spec, select=(*spec.select, Item(TIME, "at_time")), relation=word, every=every)
