"""The courses whose checkpoints are kept: each strategy under way, each mode of sharing, and what is seldom met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tests.checkpoints.course import Course, HandOver, Operated
from tests.oracle.arrival import Step
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec, Subtrahend
from tests.property.drive import Rescale
from tests.property.rows import Pushed, Shape, cut, draw_rows
from tests.sharing.case import Action, Add, Case, Change, Drop, Move, Reshare
from tests.sharing.family import Asked, Want, reads

LEFT, RIGHT, CROSSED = "((A B) C)", "(A (B C))", "((A C) B)"
ORDERS = "[A: B C | B: A C | C: A B]"
MOVED, SAVED = 3, 5
"""The steps before which a migration begins and before which the engine is saved."""

CUTS = (12, 24, 36, 48, 60, 72, 84)

WAYS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gms": (LEFT, RIGHT, {}),
    "gpt": (LEFT, RIGHT, {}),
    "ghm": (LEFT, RIGHT, {"budget": 2}),
    "hybmig": (LEFT, RIGHT, {}),
    "hybmig_background": (LEFT, RIGHT, {"background": 3}),
    "hybmig_whole": (LEFT, RIGHT, {"decompose": False}),
    "hybmig_from_orders": (ORDERS, RIGHT, {}),
    "hybmig_from_eddy": ("eddy:rank(A B C)", LEFT, {}),
    "jisc": (LEFT, RIGHT, {}),
    "jisc_background": (LEFT, RIGHT, {"background": 2}),
    "jisc_stairs": (f"stairs({LEFT})", f"stairs({RIGHT})", {}),
    "parallel_track": (LEFT, RIGHT, {}),
    "parallel_track_watermark": (LEFT, CROSSED, {"purge": "watermark"}),
    "parallel_track_hold_new": (LEFT, RIGHT, {"hold_new": True}),
    "auto": (LEFT, RIGHT, {"objective": "latency"}),
    "moving_state": (LEFT, RIGHT, {}),
    "m_join": (LEFT, ORDERS, {}),
    "cacq": (LEFT, "eddy(A B C)", {}),
    "stairs": (LEFT, f"stairs({RIGHT})", {}),
}
"""For each strategy, some with options: from which plan to which. The name of a strategy is the longest that fits."""

LASTING = ("gpt", "ghm", "hybmig", "jisc", "parallel_track")
"""How the names of those begin that are under way for several steps; the others wait in the checkpoint, to begin."""


def courses() -> dict[str, Course]:
    """All courses by name."""
    found = {name: by_strategy(name) for name in WAYS}
    found |= {
        f"sharing_{mode}": by_mode(mode) for mode in ("auto", "mem_opt", "cpu_opt", "pull_up", "push_down", "off")
    }
    return {**found, "overlapping": overlapping(), "counted": counted(), "operators": operators(), "idle": idle()}


def by_strategy(name: str) -> Course:
    """A chain that moves whole, one that a query leaves, an aggregate and a join by themselves: all by one strategy."""
    strategy = max((s for s in _strategies() if name.startswith(s)), key=len)
    old, new, options = WAYS[name]
    at = 4 if strategy.startswith("jisc") else MOVED if name.startswith(LASTING) else SAVED
    plain = not options.get("hold_new")
    actions: list[Action] = [
        Add(0, "whole", member("k", 5, plan=old)),
        Add(0, "narrow", member("k", 2, plan=old)),
        Add(0, "filtered", member("k", 4, "A.n > 1", plan=old)),
        Add(0, "leaves", member("n", 6, "B.k > 0", plan=old)),
        Add(0, "stays", member("n", 4, plan=old)),
        Add(0, "alone", member("kn", 5, plan=old)),
        Add(0, "counts", counts("ABC", 4, plan=old if plain else LEFT)),
        Add(1, "comes", member("n", 3, "C.k > 0", plan=old)),
        Move(at, "whole", new, strategy, options, together=plain),
        Move(at, "leaves", new, strategy, options),
        Move(at, "alone", new, strategy, options),
        Drop(6, "narrow"),
        Change(6, "stays", member("n", 7, plan=old)),
    ]
    if plain:
        actions.append(Move(at, "counts", new, strategy, options))
    if name == "moving_state":
        actions += [Add(0, "stateless", single()), Move(at, "stateless", "[A: ]", "pause_drain_resume")]
    lasts = frozenset({"whole", "leaves", "alone"}) if name.startswith(LASTING) else frozenset()
    return Course(case(RARE if strategy.startswith("jisc") else ROWS, *actions), SAVED, lasts)


def by_mode(mode: str) -> Course:
    """Many windows and filters, members that come, go and change, in one lane or in two."""
    actions: list[Action] = [
        Add(0, "short", member("k", 2)),
        Add(0, "long", member("k", 7)),
        Add(0, "some", member("k", 4, "A.n > 1")),
        Add(0, "others", member("k", 3, "A.n > 1", "C.k > 0")),
        Add(0, "pair", member("k", 3, names="AB")),
        Add(0, "tree", member("n", 5, plan=LEFT)),
        Add(0, "leaf", member("n", 3, "A.k > 0", plan=LEFT)),
        Add(0, "counts", counts("AB", 3)),
        Add(0, "except", difference("A", "C", 5)),
        Add(0, "single", single()),
        Add(1, "late", member("k", 3, "B.k > 0")),
        Change(2, "short", member("k", 5, "A.n > 1")),
        Add(2, "wide", member("k", 9)),
        Add(2, "new", member("k", 6), history=False),
        Drop(4, "long"),
        Change(4, "late", member("k", 8, "B.k > 0")),
        Add(5, "waiting", member("k", 6, "C.k > 0")),
        Change(6, "wide", member("k", 4)),
        Drop(6, "some"),
        Add(6, "last", member("n", 4, plan=LEFT)),
    ]
    if mode != "push_down":  # It runs a query as several joins, which have no plan to move.
        actions += [Move(4, "leaf", RIGHT, "hybmig"), Move(4, "late", CROSSED, "hybmig", {}, together=True)]
    if mode == "off":  # A query that runs by itself keeps what one window and filter need.
        actions = [action for action in actions if not isinstance(action, Change)]
    if mode == "auto":
        actions.append(Reshare(6, "mem_opt"))
    if mode == "cpu_opt":
        actions.append(Reshare(3, "pull_up"))
    lanes = 2 if mode in ("cpu_opt", "pull_up", "off") else 1
    made = replace(case(ROWS, *sorted(actions, key=lambda action: action.step)), sharing=mode, lanes=lanes)
    return Course(made, SAVED, frozenset() if mode == "push_down" else frozenset({"leaf", "late"}))


def overlapping() -> Course:
    """Migrations that begin while others are under way, and back to the first plan, in chains and alone."""

    def moves(query: str, *, together: bool) -> Iterator[Move]:
        yield Move(2, query, RIGHT, "hybmig", {}, together)
        yield Move(3, query, CROSSED, "parallel_track", {}, together)
        yield Move(4, query, LEFT, "hybmig", {"background": 1}, together)
        yield Move(5, query, RIGHT, "jisc", {"background": 1}, together)

    actions = (
        Add(0, "whole", member("k", 6, plan=LEFT)),
        Add(0, "narrow", member("k", 3, "A.n > 0", plan=LEFT)),
        Add(0, "leaves", member("n", 6, plan=LEFT)),
        Add(0, "stays", member("n", 4, plan=LEFT)),
        Add(0, "alone", member("s", 5, plan=LEFT)),
        Add(0, "counts", counts("ABC", 5, plan=LEFT)),
        *moves("whole", together=True),
        *moves("leaves", together=False),
        *moves("alone", together=False),
        *moves("counts", together=False),
    )
    found = replace(case(ROWS, *actions), lanes=2)
    return Course(found, SAVED, frozenset({"whole", "leaves", "alone", "counts"}))


def counted() -> Course:
    """Windows that count rows, whose rows wait for their turn; a window changes as a migration is under way."""
    actions = (
        Add(0, "fifteen", member("k", 15, rows=True, plan=LEFT)),
        Add(0, "twenty", member("k", 20, "A.n > 0", rows=True, plan=LEFT)),
        Add(0, "mixed", mixed(12, 4, plan=LEFT)),
        Add(0, "counts", counts("AB", 6, rows=True)),
        Add(0, "except", difference("A", "B", 4, rows=True)),
        Add(1, "three", member("k", 3, rows=True, plan=LEFT)),
        Add(2, "seven", member("k", 7, rows=True, plan=LEFT)),
        Move(3, "fifteen", RIGHT, "hybmig", {}, together=True),
        Move(3, "mixed", RIGHT, "gpt"),
        Move(4, "seven", CROSSED, "parallel_track"),
        Rescale(5, 2),
        Change(6, "three", member("k", 10, rows=True, plan=LEFT)),
    )
    return Course(replace(case(ROWS, *actions), lanes=3), SAVED, frozenset({"fifteen", "mixed", "seven"}))


def operators() -> Course:
    """Users' operators that are being handed over, and one that is about to be."""
    by_ghm, by_gpt = HandOver(3, "ghm", RIGHT, {"budget": 2}), HandOver(4, "gpt", RIGHT)
    operated = (
        Operated("queued", member("k", 5, plan=LEFT), (replace(by_ghm, plan=None),)),
        Operated("moved", member("n", 5, plan=LEFT), (by_ghm,)),
        Operated("beside", member("s", 5, plan=LEFT), (by_gpt,)),
        Operated("at_once", member("k", 4, plan=LEFT), (HandOver(5, "gms"),)),
    )
    actions = (Add(0, "plain", member("k", 6, plan=LEFT)),)
    under_way = frozenset({"queued", "moved", "beside"})
    return Course(replace(case(ROWS, *actions), lanes=2), SAVED, under_way, operated)


def idle() -> Course:
    """A stream that is silent, so that its watermark was lifted, and speaks again when the engine goes on."""
    streams, sequence = draw_rows(
        Shape(8, (40, 60, 40), span=20, keys=4, disorder=4, slack=1, idle=2, time=pa.timestamp("us", "UTC"))
    )
    silent = [(name, row) for at, (name, row) in enumerate(sequence) if name != "B" or not 40 < at < 100]
    actions = (
        Add(0, "q", member("k", 4, plan=LEFT)),
        Add(0, "r", member("k", 6, "B.n > 0", plan=LEFT)),
        Add(0, "counts", counts("AB", 5)),
        Add(0, "except", difference("B", "A", 5)),
        Move(MOVED, "r", RIGHT, "hybmig"),
        Move(4, "q", CROSSED, "jisc", {"background": 1}),
    )
    return Course(case((streams, silent), *actions), SAVED, frozenset({"r"}))


ROWS = draw_rows(Shape(7, (44, 44, 44), span=20, keys=4, disorder=4, slack=1))
RARE = draw_rows(Shape(9, (120, 120, 120), span=20, keys=40, disorder=4, slack=1))
"""So many keys that some are not asked for soon, and stay incomplete."""


def case(rows: tuple[tuple[StreamSpec, ...], Pushed], *actions: Action) -> Case:
    """Eight steps, with late rows and rows without a time."""
    streams, sequence = rows
    return Case(streams, tuple(map(_with_dead_rows, cut(streams, sequence, CUTS))), actions)


def member(
    key: str, size: float, *filters: str, names: str = "ABC", rows: bool = False, plan: str | None = None
) -> Asked:
    """A join over the keys, one after the other, with windows of so many seconds (or rows), and filters."""
    keys = (key * len(names))[: len(names) - 1]
    ties = [f"{one}.{key} = {other}.{key}" for key, one, other in zip(keys, names, names[1:], strict=False)]
    where = tuple(Condition(text, tuple(name for name in names if f"{name}." in text)) for text in (*ties, *filters))
    length = int(size) if rows else round(size * SECOND)
    sources = tuple(SourceSpec(name, name, None if rows else length, length if rows else None) for name in names)
    items = (*(Item(f"{name}.u", name.lower()) for name in names), Item("_ts"))
    return _asked(QuerySpec(sources, items, where), frozenset(ties), frozenset(filters), plan)


def mixed(count: int, size: int, plan: str) -> Asked:
    """A join of which one window counts rows."""
    asked = member("n", size, plan=plan)
    first, *others = asked.spec.sources
    sources = (replace(first, range=None, rows=count), *others)
    assert asked.want is not None
    return _asked(replace(asked.spec, sources=sources), asked.want.tie[1], asked.want.filters, plan)


def _asked(spec: QuerySpec, ties: frozenset[str], filters: frozenset[str], plan: str | None) -> Asked:
    windows = {s.alias: ("rows", s.rows or 0) if s.rows else ("range", s.range or 0) for s in spec.sources}
    columns = reads(spec, {name: name for name in spec.aliases})
    return Asked(spec, plan, Want((spec.aliases, ties), windows, filters, plan or " ".join(spec.aliases), columns))


def counts(names: str, size: int, *, rows: bool = False, plan: str | None = None) -> Asked:
    """An aggregate over a join, which shares with nobody."""
    spec = member("k", size, names=names, rows=rows).spec
    items = (Item("A.n", "g"), Item("COUNT(*)", "n"), Item("SUM(B.u)", "s"), Item("_ts"))
    return Asked(replace(spec, select=items, group_by=("A.n",), every=2 * SECOND), plan)


def difference(one: str, other: str, size: int, *, rows: bool = False) -> Asked:
    """The rows of one stream that no row of another matches."""
    first, second = member("k", size, names=f"{one}{other}", rows=rows).spec.sources
    return Asked(QuerySpec((first,), (Item(f"{one}.u"), Item("_ts")), subtracted=(Subtrahend(second, ("k",)),)))


def single() -> Asked:
    """A query over one stream that keeps no state."""
    return Asked(QuerySpec((SourceSpec("A", "A"),), (Item("A.u"),), (Condition("A.k > 1", ("A",)),)), "A")


def _with_dead_rows(step: Step) -> Mapping[str, pa.Table]:
    """The step with a row more in each table, which has no time."""
    return {name: pa.concat_tables([table, _timeless(table)]) for name, table in step.items()}


def _timeless(table: pa.Table) -> pa.Table:
    row = table.slice(0, 1)
    at = table.column_names.index("ts")
    return row.set_column(at, table.schema.field("ts"), pa.nulls(row.num_rows, table.schema.field("ts").type))


def _strategies() -> tuple[str, ...]:
    return (
        "auto", "cacq", "ghm", "gms", "gpt", "hybmig", "jisc", "jisc_stairs", "m_join", "moving_state",
        "parallel_track", "stairs",
    )  # fmt: skip
