"""Quantiles, BOOL_AND, BOOL_OR, COUNT_IF, lists, ARG_MIN and ARG_MAX, each with what DuckDB is asked for."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.spec import Item

FILTER = "FILTER (WHERE {s} IS NOT NULL AND {v} IS NOT NULL)"
CALLS = (
    ("QUANTILE_CONT({v}, {p})",) * 2,
    ("QUANTILE_DISC({v}, {p})",) * 2,
    ("QUANTILE({n}, {p})",) * 2,
    ("PERCENTILE_CONT({p}) WITHIN GROUP (ORDER BY {v})",) * 2,
    ("PERCENTILE_DISC({p}) WITHIN GROUP (ORDER BY {n})",) * 2,
    ("QUANTILE_DISC({s}, {p})",) * 2,
    ("BOOL_AND({v} > 1)",) * 2,
    ("BOOL_OR({v} > 2)",) * 2,
    ("COUNT_IF({v} > 1)", "COUNT(*) FILTER (WHERE {v} > 1)"),
    ("QUANTILE_CONT({n}, {p}) FILTER (WHERE {s} = 'a')",) * 2,
    ("ARRAY_AGG({v})", "list({v} ORDER BY {v})"),
    ("LIST({s} ORDER BY {n} DESC)", "list({s} ORDER BY {n} DESC, {s})"),
    ("ARRAY_AGG(DISTINCT {n} ORDER BY {n} DESC)",) * 2,
    ("ARRAY_AGG({s} ORDER BY {v}) FILTER (WHERE {v} > 1)", "list({s} ORDER BY {v}, {s}) FILTER (WHERE {v} > 1)"),
    ("COLLECT_LIST({v})", "coalesce(list({v} ORDER BY {v}) FILTER (WHERE {v} IS NOT NULL), [])"),
    ("COLLECT_SET({s})", "coalesce(list(DISTINCT {s} ORDER BY {s}) FILTER (WHERE {s} IS NOT NULL), [])"),
    ("STRING_AGG({s}, '-')", "string_agg({s}, '-' ORDER BY {s})"),
    ("LISTAGG({s}, '') WITHIN GROUP (ORDER BY {n})", "string_agg({s}, '' ORDER BY {n}, {s})"),
    ("ARG_MIN({s}, {v})", f"(list({{s}} ORDER BY {{v}}, {{s}}) {FILTER})[1]"),
    ("MAX_BY({s}, {v})", f"(list({{s}} ORDER BY {{v}} DESC, {{s}}) {FILTER})[1]"),
)
"""As users write them, and as DuckDB is asked: of numbers `v`, whole numbers `n`, texts `s` and a share `p`."""

SHARES = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)


@st.composite
def quantiles(draw: st.DrawFn) -> Item:
    """A call over the columns of A."""
    columns = {"v": "A.d", "n": "A.n", "s": "A.s", "p": draw(st.sampled_from(SHARES))}
    ours, theirs = (text.format(**columns) for text in draw(st.sampled_from(CALLS)))
    return Item(ours, approximate="_CONT" in ours, sql=theirs)
