"""Queries that join the same sources by the same predicates, and differ in windows, filters, select lists, plans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, Subtrahend
from tests.property.queries import BANDS, COLUMNS, EQUALITIES, EXPRESSIONS, SELECTIONS, THETAS, TRIPLES, tree
from tests.property.rows import TIME_TYPES, schema

Window = tuple[str, int]
"""`("range", microseconds)` or `("rows", number)`."""

KEYED = ("{a}.k = {b}.k",)
TWO_KEYS = ("{a}.k = {b}.k", "{a}.n = {b}.n")
TIES = {
    "one key": 5,
    "two keys": 2,
    "keys that change": 3,
    "equalities": 2,
    "band": 3,
    "theta": 2,
    "mixed": 3,
    "none": 1,
}
PAIRED = tuple(text for text in BANDS + THETAS if "IS NULL AND" not in text)
"""Without the conjunction of two filters."""

NESTED = ("{a}.k > 0", "{a}.k > 1", "{a}.k > 2")
TIMES = tuple(round(seconds * SECOND) for seconds in (0, 0.5, 1, 2, 2.000001, 2.999999, 3, 5, 8, 13))
ALL = tuple(schema(TIME_TYPES[0]).names)
NUMBERS = (1, 2, 3, 5, 8)
PLANS = {"default": 3, "tree": 6, "orders": 1, "eddy": 1, "stairs": 1}


@dataclass(frozen=True)
class Want:
    """What a member wants, over labels that hold across queries: equal `tie` is equal join; `reads` is all columns."""

    tie: tuple[tuple[str, ...], frozenset[str]]
    windows: Mapping[str, Window]
    filters: frozenset[str]
    plan: str
    reads: frozenset[str] = frozenset()

    def passes(self, other: Want) -> bool:
        """Whether it is the other's join by its plan and kinds of windows, with no filter less and no column more."""
        kinds = all(self.windows.get(label, ("", 0))[0] == kind for label, (kind, _) in other.windows.items())
        return (
            self.tie == other.tie
            and self.plan == other.plan
            and kinds
            and other.filters <= self.filters
            and self.reads <= other.reads
        )

    def within(self, other: Want) -> bool:
        """Whether all that it wants the other wants too."""
        return self.passes(other) and all(size <= other.windows[label][1] for label, (_, size) in self.windows.items())


@dataclass(frozen=True)
class Asked:
    """A query as it is asked: its text, its plan in its own aliases, and what it wants if it may share."""

    spec: QuerySpec
    plan: str | None = None
    want: Want | None = None


@dataclass(frozen=True)
class Manner:
    """How a member is written, which is nobody's business: order of FROM, aliases, select list."""

    labels: tuple[str, ...]
    aliases: Mapping[str, str]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Family:
    """A join, and what its members choose from. A label is a stream's name, or with a number if it comes twice.

    Where select lists are not `varied` all name the rows they join.
    """

    labels: tuple[str, ...]
    ties: tuple[str, ...]
    filters: tuple[str, ...] = ()
    windows: tuple[Mapping[str, Window], ...] = ()
    plans: tuple[str | None, ...] = (None,)
    varied: bool = True

    def member(self, rng: Random, manner: Manner | None = None, plan: str = "") -> tuple[Asked, Manner]:
        """A member; with a `manner` it is written like another, whose plan it keeps."""
        again = manner is not None
        manner = manner or self._manner(rng)
        windows = rng.choice(self.windows)
        count = rng.choice((0, 1, 1, 2, 2)) if self.filters else 0
        filters = rng.sample(self.filters, min(count, len(self.filters)))
        chosen = plan if again and "{" in plan else None if again else rng.choice(self.plans)
        spec = self._spec(rng, manner, windows, filters)
        by = chosen or " ".join(manner.labels)  # The plan by default follows the order of FROM.
        want = Want(
            (tuple(sorted(self.labels)), frozenset(self.ties)),
            windows,
            frozenset(filters),
            by,
            reads(spec, manner.aliases),
        )
        return Asked(spec, chosen and chosen.format(**manner.aliases), want), manner

    def _spec(self, rng: Random, manner: Manner, windows: Mapping[str, Window], filters: Sequence[str]) -> QuerySpec:
        aliases = manner.aliases
        texts = [*self.ties, *filters]
        where = [
            Condition(text.format(**aliases), tuple(aliases[label] for label in self.labels if f"{{{label}}}" in text))
            for text in rng.sample(texts, len(texts))
        ]
        sizes = set(windows.values())
        if len(sizes) == 1 and next(iter(sizes))[0] == "range" and rng.random() < 0.6:
            sources = tuple(SourceSpec(aliases[label], label[0]) for label in manner.labels)
            return QuerySpec(sources, manner.items, tuple(where), window=next(iter(sizes))[1])
        sources = tuple(_source(aliases[label], label[0], windows[label]) for label in manner.labels)
        return QuerySpec(sources, manner.items, tuple(where))

    def _manner(self, rng: Random) -> Manner:
        """How a member is written: mostly plainly."""
        order = self.labels if rng.random() < 0.5 else tuple(rng.sample(self.labels, len(self.labels)))
        renamed = rng.random() < 0.3
        aliases = {}
        for label in self.labels:
            alone = sum(other[0] == label[0] for other in self.labels) == 1
            plain = label if alone else f"{label.lower()}"
            aliases[label] = f"x{label.lower()}" if renamed and alone else plain
        items = [Item(f"{aliases[label]}.u", f"u{place}") for place, label in enumerate(self.labels)]
        if self.varied and rng.random() < 0.6:
            items = items[: rng.randrange(1, len(items) + 1)]
            for place in range(rng.choice((0, 1, 2))):
                name, other = (aliases[label] for label in rng.sample(self.labels, 2))
                if rng.random() < 0.6:
                    items.append(Item(f"{name}.{rng.choice(COLUMNS)}", f"c{place}"))
                else:
                    items.append(Item(rng.choice(EXPRESSIONS).format(a=name, b=other), f"c{place}"))
        if rng.random() < 0.8:
            items.insert(rng.randrange(len(items) + 1), Item("_ts"))
        return Manner(order, aliases, (Item("*"),) if self.varied and rng.random() < 0.15 else tuple(items))


def reads(spec: QuerySpec, aliases: Mapping[str, str]) -> frozenset[str]:
    """The columns that a query reads, as `label.column`; a time is one too."""
    texts = [*(item.text for item in spec.select), *(condition.text for condition in spec.where)]
    found = {
        f"{label}.{c}" for label, alias in aliases.items() for t in texts for c in re.findall(rf"\b{alias}\.(\w+)", t)
    }
    return frozenset(found | ({f"{label}.{c}" for label in aliases for c in ALL} if "*" in texts else set()))


def _source(alias: str, stream: str, window: Window) -> SourceSpec:
    kind, size = window
    return SourceSpec(alias, stream, rows=size) if kind == "rows" else SourceSpec(alias, stream, range=size)


def family(rng: Random, streams: Sequence[str], *, filters: bool = True, rows: bool = True) -> Family:
    """A join of some of the streams, with pools of filters, windows and plans for its members."""
    count = min(len(streams), rng.choice((2, 2, 2, 3, 3, 4)))
    labels = tuple(streams[:count]) if rng.random() < 0.7 else tuple(rng.sample(list(streams), count))
    if rng.random() < 0.05:
        labels = (f"{labels[0]}1", f"{labels[0]}2", *labels[1 : count - 1])
    return Family(
        labels,
        _ties(rng, labels),
        _filters(rng, labels) if filters else (),
        _windows(rng, labels, rows),
        _plans(rng, labels),
        rng.random() < 0.5,
    )


def _ties(rng: Random, labels: tuple[str, ...]) -> tuple[str, ...]:
    kind = rng.choices(list(TIES), list(TIES.values()))[0]
    found: list[str] = []
    for place, label in enumerate(labels[1:], start=1):
        other = labels[place - 1] if rng.random() < 0.7 else labels[rng.randrange(place)]
        if kind == "none" and place == 1:
            continue
        loose: Mapping[str, tuple[str, ...]] = {"band": BANDS, "theta": PAIRED[len(BANDS) :], "mixed": PAIRED}
        texts = {
            "one key": KEYED, "two keys": TWO_KEYS, "keys that change": (TWO_KEYS[place % 2],),
            "equalities": (rng.choice(EQUALITIES),),
        }.get(kind, (rng.choice(loose[kind]),) if kind in loose and place == 1 else KEYED)  # fmt: skip
        found += [_over(text, other, label) for text in texts]
        if kind == "mixed":
            found.append(_over(rng.choice(EQUALITIES), other, label))
    if len(labels) > 2 and rng.random() < 0.1:
        found.append(_over(rng.choice(TRIPLES), *rng.sample(labels, 3)))
    return tuple(dict.fromkeys(found))


def _filters(rng: Random, labels: tuple[str, ...]) -> tuple[str, ...]:
    """None, nested ones, any ones; on one source or on several."""
    kind = rng.choice(("none", "nested", "nested", "any", "any", "both"))
    label = rng.choice(labels)
    found = [_over(text, label) for text in NESTED] if kind in ("nested", "both") else []
    if kind in ("any", "both"):
        found += [_over(rng.choice(SELECTIONS), rng.choice(labels)) for _ in range(rng.choice((1, 2, 3)))]
        if rng.random() < 0.4:
            found.append(_over("{a}.k = 1 OR {a}.n = 0", rng.choice(labels)))
    return tuple(dict.fromkeys(found))


def _windows(rng: Random, labels: tuple[str, ...], rows: bool) -> tuple[Mapping[str, Window], ...]:
    manner = rng.choice(("same", "same", "same", "each", "each", *(("rows", "mixed") if rows else ())))
    counted = {label for label in labels if manner == "rows" or (manner == "mixed" and rng.random() < 0.5)}
    times = rng.sample(TIMES, rng.choice((2, 3, 4)))
    found: list[Mapping[str, Window]] = []
    for _ in range(rng.choice((2, 3, 4, 5))):
        size, number = rng.choice(times), rng.choice(NUMBERS)
        sizes = {label: size if manner == "same" else rng.choice(times) for label in labels}
        numbers = {label: number if rng.random() < 0.6 else rng.choice(NUMBERS) for label in labels}
        found.append({n: ("rows", numbers[n]) if n in counted else ("range", sizes[n]) for n in labels})
    return tuple(found)


def _plans(rng: Random, labels: tuple[str, ...]) -> tuple[str | None, ...]:
    """Mostly one tree for all; sometimes two, and other forms of plan."""
    return tuple(plan(rng, labels) for _ in range(rng.choice((1, 1, 1, 2))))


def plan(rng: Random, labels: Sequence[str], form: str | None = None) -> str | None:
    """A plan of a form, or of any, over labels in braces; None for the default."""
    form = form or rng.choices(list(PLANS), list(PLANS.values()))[0]
    names = [f"{{{label}}}" for label in rng.sample(list(labels), len(labels))]
    match form:
        case "tree":
            return tree(rng, names, left_deep=rng.random() < 0.6)
        case "orders":
            return f"[{' | '.join(f'{a}: ' + ' '.join(b for b in names if b != a) for a in names)}]"
        case "eddy":
            return f"eddy{rng.choice(('', ':lottery', ':rank'))}({' '.join(names)})"
        case "stairs":
            return f"stairs({tree(rng, names, left_deep=False)})"
    return None


def beside(rng: Random, streams: Sequence[str]) -> Asked:
    """A query that is not a member of anything: an aggregate, a difference, or one over a single stream."""
    one, other = rng.sample(list(streams), 2)
    size = rng.choice(TIMES)
    first, second = SourceSpec(one, one, range=size), SourceSpec(other, other, range=size)
    kind = rng.choice(("aggregate", "difference", "single"))
    if kind == "aggregate":
        items = (Item(f"{one}.k", "g"), Item("COUNT(*)", "n"), Item(f"SUM({other}.n)", "s"), Item("_ts"))
        where = (Condition(f"{one}.k = {other}.k", (one, other)),)
        return Asked(QuerySpec((first, second), items, where, (f"{one}.k",), rng.choice((1, 2, 7)) * SECOND))
    if kind == "difference":
        return Asked(QuerySpec((first,), (Item(f"{one}.u"), Item("_ts")), subtracted=(Subtrahend(second, ("k",)),)))
    return Asked(QuerySpec((SourceSpec(one, one),), (Item(f"{one}.u"),), (Condition(f"{one}.k > 1", (one,)),)))


def _over(text: str, *labels: str) -> str:
    """A template over sources a, b, c as one over labels.

    >>> _over("{a}.k = {b}.k", "A", "B")
    '{A}.k = {B}.k'
    """
    return text.format(**{name: f"{{{label}}}" for name, label in zip("abc", labels, strict=False)})
