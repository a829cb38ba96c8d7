"""Random queries over the columns of `rows.schema`, and random plans for them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, Subtrahend

EQUALITIES = (
    "{a}.k = {b}.k", "{a}.k = {b}.k", "{a}.d = {b}.d", "{a}.s = {b}.s", "{a}.d = {b}.d", "{a}.n = {b}.n",
    "{a}.m = {b}.m", "{a}.k = {b}.n", "{a}.n = {b}.d", "{a}.k = {b}.m", "{a}.day = {b}.day", "{a}.ok = {b}.ok",
    "{a}.ts = {b}.ts",
    "{a}.k + 1 = {b}.k", "{a}.k % 2 = {b}.k % 2", "{a}.k = {b}.k + {b}.n", "COALESCE({a}.k, 0) = COALESCE({b}.n, 1)",
)  # fmt: skip
BANDS = (
    "ABS({a}.d - {b}.d) < 1", "{a}.k BETWEEN {b}.k - 1 AND {b}.k + 1", "{a}.d - {b}.d <= 0.5", "{a}.n >= {b}.k",
    "{a}.m - {b}.m BETWEEN -0.5 AND 1.5", "{a}.d < {b}.d", "{a}.ts < {b}.ts", "{a}.d > {b}.k",
    "ABS({a}.k - {b}.k) <= 1", "{a}.d + 1 >= {b}.d",
)  # fmt: skip
THETAS = (
    "{a}.s <> {b}.s", "{a}.k = {b}.k OR {a}.s = {b}.s", "{a}.k * {b}.k > 2", "{a}.k / {b}.k > 0.7",
    "NOT ({a}.k = {b}.k)", "({a}.k = 1) = ({b}.k = 1)", "{a}.d IN ({b}.d, {b}.k)", "{a}.s < {b}.s",
    "{a}.s IS NULL AND {b}.s IS NOT NULL",
    "{a}.k = {b}.k OR {a}.d > {b}.d", "CASE WHEN {a}.ok THEN {a}.k = {b}.k ELSE {b}.ok END", "{a}.day <> {b}.day",
)  # fmt: skip
TRIPLES = (
    "{a}.k + {b}.k = {c}.k", "{a}.d < {b}.d + {c}.d", "{a}.k = {b}.k OR {b}.k = {c}.k", "{b}.k BETWEEN {a}.k AND {c}.n",
)  # fmt: skip
SELECTIONS = (
    "{a}.k > 1", "{a}.k < 3", "{a}.s LIKE 'a%'", "{a}.s NOT LIKE '%b'", "{a}.k IN (0, 1, 2)", "{a}.s IN ('a', 'é', '')",
    "{a}.d BETWEEN 0 AND 1.5", "{a}.s IS NOT NULL", "{a}.d IS NULL OR {a}.d >= 0", "{a}.k % 2 = 0", "NOT ({a}.k = 1)",
    "{a}.ok", "{a}.d > 1e300", "{a}.k / {a}.n >= 1", "{a}.m <> 1.00", "{a}.day >= DATE '2024-02-29'", "{a}.k = {a}.n",
    "{a}.k NOT IN (1, NULL)", "1 = 1", "{a}.s LIKE '_'",
)  # fmt: skip
EXPRESSIONS = (
    "{a}.k + {b}.n", "{a}.d * 2", "{a}.k / 2", "COALESCE({a}.k, -1)", "CASE WHEN {a}.k > 1 THEN 'many' ELSE {b}.s END",
    "{a}.d - {b}.d", "-{a}.k", "{a}.k > {b}.k", "{a}.m + {b}.m",
)  # fmt: skip
CALLS = (
    "COUNT(*)", "COUNT({a}.d)", "COUNT(DISTINCT {a}.s)", "COUNT(DISTINCT {a}.d)", "SUM({a}.k)", "SUM({a}.n + {b}.n)",
    "SUM({a}.m)", "SUM({a}.d)", "AVG({a}.k)", "AVG({b}.d)", "MIN({a}.d)", "MAX({a}.d)", "MIN({b}.s)", "MAX({a}.k)",
    "MIN({a}.day)", "MAX({a}.m)", "MEDIAN({a}.k)", "MEDIAN({a}.d)", "MIN({a}.k + {b}.k)",
    "STDDEV({a}.k)", "STDDEV_POP({b}.k)", "VARIANCE({a}.k + {b}.k)", "VAR_POP({a}.k)",
    "COUNT(*) FILTER (WHERE {a}.k > {b}.k)", "SUM({a}.k) FILTER (WHERE {b}.s IS NOT NULL)",
    "COUNT(DISTINCT {a}.s) FILTER (WHERE {b}.ok)", "MAX({a}.d) FILTER (WHERE {a}.k % 2 = 0)",
)  # fmt: skip
ROUNDED = ("AVG", "STDDEV", "VAR")
HAVINGS = (
    "COUNT(*) > 1", "SUM({a}.k) >= 2", "MAX({a}.s) <> 'a'", "MIN({b}.d) IS NULL", "COUNT({a}.d) < COUNT(*)",
    "MAX({a}.k) > 1 OR MIN({b}.k) IS NULL", "COUNT(*) FILTER (WHERE {a}.k > 0) = COUNT(*)",
)  # fmt: skip
COLUMNS = ("k", "n", "s", "d", "m", "day", "ok", "u", "u", "ts")
KEYS = (("k",), ("s",), ("d",), ("k", "n"), ("k", "s"), ("day",), ("k", "d", "s"))

KINDS = ("join", "join", "join", "aggregate", "difference", "single")
"""What queries are: most are joins."""


@st.composite
def queries(
    draw: st.DrawFn,
    streams: Sequence[str],
    *,
    kinds: Sequence[str] = KINDS,
    rows_windows: bool = True,
    least: int = 2,
    sources: int = 5,
) -> QuerySpec:
    """A query over some streams; a join has `least` to `sources` of them, with ROWS windows if `rows_windows`."""
    kind = draw(st.sampled_from(kinds))
    most = {"join": sources, "aggregate": min(3, sources), "difference": min(3, sources), "single": 1}[kind]
    fewest = {"join": least, "aggregate": 1, "difference": 2, "single": 1}[kind]
    count = draw(st.sampled_from(range(min(fewest, most), most + 1)))
    picked = draw(st.lists(st.sampled_from(streams), min_size=count, max_size=count))
    if kind == "join" and draw(st.booleans()):
        picked = [streams[place % len(streams)] for place in range(count)]
    if kind == "difference" and draw(st.integers(0, 4)):
        picked = [picked[0], *(streams[(streams.index(stream) + 1) % len(streams)] for stream in picked[1:])]
    window, sized = draw(_windows(picked, kind, rows_windows or kind in ("aggregate", "difference")))
    where = draw(_conditions([s.alias for s in sized], kind))
    names = [s.alias for s in sized]
    if kind == "difference":
        keys = [draw(st.sampled_from(KEYS)) for _ in sized[1:]]
        parts = tuple(Subtrahend(s, columns) for s, columns in zip(sized[1:], keys, strict=True))
        return QuerySpec(sized[:1], draw(_items(names[:1])), where, subtracted=parts, window=window)
    if kind == "aggregate":
        columns = st.sampled_from([f"{name}.{column}" for name in names for column in ("k", "s", "d", "n", "ok")])
        groups = draw(st.lists(columns, max_size=2, unique=True))
        calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=4))
        items = [Item(text, f"g{place}") for place, text in enumerate(groups)]
        for place, call in enumerate(calls):
            one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
            items.append(Item(call.format(a=one, b=other), f"a{place}", ".d" in call or call.startswith(ROUNDED)))
        if draw(st.booleans()):
            items.insert(draw(st.integers(0, len(items))), Item("_ts"))
        every = draw(st.sampled_from((1, 2, 3, 7))) * SECOND
        chosen = draw(st.sampled_from(("", *HAVINGS)))
        having = chosen.format(a=draw(st.sampled_from(names)), b=draw(st.sampled_from(names)))
        return QuerySpec(sized, tuple(items), where, tuple(groups), every, window=window, having=having)
    return QuerySpec(sized, draw(_items(names)), where, window=window)


@st.composite
def _windows(
    draw: st.DrawFn, picked: list[str], kind: str, rows_windows: bool
) -> tuple[int | None, tuple[SourceSpec, ...]]:
    """Aliases for streams that come twice, and windows: one for all or one for each, in time or in rows."""
    manners = ("query", "same", "each", "each")
    manner = draw(st.sampled_from((*manners, "rows", "mixed") if rows_windows else manners))
    seconds = (13, 8, 5, 4, 2, 0) if kind == "aggregate" else (0, 1, 2, 3, 5, 8, 13)
    times = st.sampled_from(seconds).map(lambda size: size * SECOND)
    numbers = st.sampled_from((1, 2, 3, 5, 8))
    same = draw(times)
    sources = []
    bare = kind == "single" and draw(st.booleans())
    for place, stream in enumerate(picked):
        alias = f"{stream.lower()}{place}" if picked.count(stream) > 1 else stream
        if manner == "query" or bare:
            sources.append(SourceSpec(alias, stream))
        elif manner == "rows" or (manner == "mixed" and draw(st.booleans())):
            sources.append(SourceSpec(alias, stream, rows=draw(numbers)))
        else:
            sources.append(SourceSpec(alias, stream, range=same if manner == "same" else draw(times)))
    return (same if manner == "query" and not bare else None), tuple(sources)


@st.composite
def _conditions(draw: st.DrawFn, names: list[str], kind: str) -> tuple[Condition, ...]:
    """A conjunct that ties each source to one before it (rarely none), selections, and conjuncts over three."""
    found: list[Condition] = []

    def add(texts: Sequence[str], *aliases: str) -> None:
        text = draw(st.sampled_from(texts)).format(**dict(zip("abc", aliases, strict=False)))
        used = tuple(alias for alias in aliases if f"{alias}." in text)
        found.append(Condition(text, used))

    if kind in ("join", "aggregate"):
        favourite = draw(st.sampled_from((None, "{a}.k = {b}.k")))
        for place, name in enumerate(names[1:], start=1):
            other = names[draw(st.integers(0, place - 1))]
            pair = (other, name) if draw(st.booleans()) else (name, other)
            if favourite:
                add((favourite,), *pair)
            else:
                loose = (BANDS, THETAS, ()) if place < 3 else ()
                texts = draw(st.sampled_from((EQUALITIES, EQUALITIES, EQUALITIES, *loose)))
                if texts:
                    add(texts, *pair)
        if len(names) > 1 and draw(st.integers(0, 2)) == 0:
            one, other = draw(st.permutations(names))[:2]
            add(draw(st.sampled_from((EQUALITIES, BANDS, THETAS))), one, other)
        if len(names) > 2 and draw(st.integers(0, 3)) == 0:
            add(TRIPLES, *draw(st.permutations(names))[:3])
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
        add(SELECTIONS, draw(st.sampled_from(names)))
    return tuple(draw(st.permutations(found)))


@st.composite
def _items(draw: st.DrawFn, names: list[str]) -> tuple[Item, ...]:
    """A select list: columns, expressions, the time, or everything."""
    if draw(st.integers(0, 9)) == 9:
        return (Item("*"), Item("_ts")) if draw(st.booleans()) else (Item("*"),)
    items: list[Item] = []
    for place in range(draw(st.integers(1, 4))):
        name = draw(st.sampled_from(names))
        if draw(st.integers(0, 3)):
            text = f"{name}.{draw(st.sampled_from(COLUMNS))}"
            items.append(Item(text, draw(st.sampled_from(("", f"c{place}")))))
        else:
            text = draw(st.sampled_from(EXPRESSIONS)).format(a=name, b=draw(st.sampled_from(names)))
            items.append(Item(text, f"c{place}"))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Item("_ts"))
    return tuple(items)


def plans(query: QuerySpec) -> st.SearchStrategy[str]:
    """A plan of any shape, in plan notation."""
    return st.integers(0, 2**32).map(lambda seed: any_plan(Random(seed), query))


def any_plan(rng: Random, query: QuerySpec) -> str:
    """Left-deep, bushy, multi-way or by an eddy, the sources in any order; a difference keeps its minuend leftmost."""
    aliases = rng.sample(query.aliases, len(query.aliases))
    if query.subtracted:
        first = query.aliases[0]
        return tree(rng, [first, *(alias for alias in aliases if alias != first)], left_deep=True)
    form = rng.random()
    if len(aliases) == 1:
        return aliases[0] if form < 0.5 else f"[{aliases[0]}: ]"
    if form < 0.2:
        orders = (f"{a}: {' '.join(rng.sample([b for b in aliases if b != a], len(aliases) - 1))}" for a in aliases)
        return f"[{' | '.join(orders)}]"
    if form < 0.4:
        return f"eddy{rng.choice(('', ':lottery', ':rank'))}({' '.join(aliases)})"
    drawn = tree(rng, aliases, left_deep=rng.random() < 0.4)
    return f"stairs({drawn})" if form < 0.5 else drawn


def tree(rng: Random, aliases: list[str], *, left_deep: bool) -> str:
    """A tree of any shape over the sources in this order."""
    if len(aliases) == 1:
        return aliases[0]
    middle = len(aliases) - 1 if left_deep else rng.randrange(1, len(aliases))
    left, right = (tree(rng, part, left_deep=left_deep) for part in (aliases[:middle], aliases[middle:]))
    return f"({left} {right})"
