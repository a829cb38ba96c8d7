"""Cases in which everything is done together: what sharing, migrations, lanes and time do well apart may still cross.

Several queries over one join, with other windows on each stream; changes of windows and filters while migrations among
trees, `stairs` and `eddy` are under way; other modes of sharing, other numbers of lanes, restarts; streams that fall
silent; events in bursts that arrive up to 13 minutes after their time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.conformance.trips import options, strategies
from tests.oracle.spec import SECOND, StreamSpec
from tests.property.drive import Rescale, Restart
from tests.property.rows import BEGIN, NUMBERS, TIME_TYPES, WORDS, Pushed, cut, schema
from tests.sharing.case import Action, Add, Case, Change, Drop, Move, Reshare
from tests.sharing.draw import FORMS, MODES
from tests.sharing.family import Family, Manner, Window, plan

MILLISECOND, MINUTE = 1000, 60 * SECOND

TIMES = (0, 100 * MILLISECOND, SECOND, 5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE)
COUNTS = (1, 2, 5, 9, 40)

SPAN, LATEST = 40 * MINUTE, 13 * MINUTE
"""Of event time in all, and by which a row comes after its time at most."""

OFTEN = {"moving_state": 1, "hybmig": 3, "jisc": 3, "gpt": 3, "ghm": 3, "parallel_track": 3, "stairs": 3, "cacq": 2}
"""How often a strategy is drawn; all others once."""


@dataclass(frozen=True)
class Busy:
    """Steps in which much is done at once."""

    rng: Random
    steps: tuple[int, ...]

    def step(self, since: int, until: int) -> int:
        """A step of this range, mostly a busy one."""
        inside = [step for step in self.steps if since <= step < until]
        return self.rng.choice(inside) if inside and self.rng.random() < 0.6 else self.rng.randrange(since, until)


def everything(seed: int) -> Case:
    """The case of a number."""
    rng = Random(seed)
    names = "ABCD"[: rng.choice((2, 3, 3, 3, 4))]
    families = [_family(rng, names)]
    if len(names) > 2 and rng.random() < 0.4:
        families.append(_family(rng, "".join(rng.sample(names, rng.randrange(2, len(names))))))
    streams, sequence = _rows(rng, names)
    cuts = tuple(rng.randrange(101) for _ in range(rng.choice((4, 6, 8, 11))))
    steps = cut(streams, sequence, cuts, bare=rng.random() < 0.5)
    busy = Busy(rng, tuple(rng.randrange(len(steps)) for _ in range(3)))
    actions: list[Action] = []
    for number in range(rng.choice((1, 2, 3, 3, 4, 5))):
        actions += _life(rng, rng.choice(families), f"q{number}", len(steps), busy)
    sharing = rng.choice(MODES)
    for _ in range(rng.choice((0, 1, 1, 2, 2))):
        actions.append(Reshare(busy.step(0, len(steps)), rng.choice(MODES)))
    for _ in range(rng.choice((0, 1, 1, 2, 2))):
        actions.append(Rescale(busy.step(0, len(steps)), rng.choice((1, 2, 3))))
    for _ in range(rng.choice((0, 1, 1, 2, 2))):
        actions.append(Restart(busy.step(0, len(steps)), rng.random() < 0.5))
    turns: dict[tuple[int, object], float] = defaultdict(rng.random)
    ordered = sorted(actions, key=lambda action: (action.step, turns[action.step, getattr(action, "query", action)]))
    return Case(streams, steps, tuple(ordered), sharing, rng.choice((1, 1, 2, 3)))


def _family(rng: Random, names: str) -> Family:
    """Queries that join the streams by equalities, with few filters and many windows."""
    labels = tuple(rng.sample(names, len(names)))
    columns = rng.choice((("k",), ("k",), ("k", "n"), ("s",)))
    ties = []
    for place, label in enumerate(labels[1:], start=1):
        other = labels[rng.randrange(place)]
        column = rng.choice(columns)
        ties.append(f"{{{other}}}.{column} = {{{label}}}.{column}")
    filters = tuple(
        f"{{{rng.choice(labels)}}}.{text}" for text in rng.sample(("k > 0", "n > 0", "ok", "s LIKE 'a%'", "k < 2"), 2)
    )
    counted = {label for label in labels if rng.random() < rng.choice((0.0, 0.0, 0.5, 1.0))}
    windows = tuple({label: _window(rng, label in counted) for label in labels} for _ in range(rng.choice((3, 5, 7))))
    forms = ("tree", "tree", "tree", "stairs", "eddy", "orders")
    plans = tuple(plan(rng, labels, rng.choice(forms)) for _ in range(rng.choice((1, 1, 2))))
    return Family(labels, tuple(ties), filters, windows, plans, varied=rng.random() < 0.3)


def _window(rng: Random, counted: bool) -> Window:
    return ("rows", rng.choice(COUNTS)) if counted else ("range", rng.choice(TIMES))


def _rows(rng: Random, names: str) -> tuple[tuple[StreamSpec, ...], Pushed]:
    """Bursts of events in all streams, some of which arrive long after their time, and silence between."""
    keys, most = rng.choice((1, 2, 2, 3)), {2: 40, 3: 24, 4: 12}[len(names)]
    bursts = [rng.randrange(SPAN // SECOND) * SECOND for _ in range(rng.choice((1, 2, 4, 8)))]
    late = rng.choice((0.0, 0.2, 0.5))
    arrivals: list[tuple[int, int, str, dict[str, Any]]] = []
    streams = []
    time = rng.choice(TIME_TYPES)
    silent = {name for name in names if rng.random() < 0.35}
    for index, name in enumerate(names):
        drawn = []
        mine = bursts[: rng.randrange(1, len(bursts) + 1)] if name in silent else bursts
        for number in range(rng.choice((most, most, most // 2))):
            ts = rng.choice(mine) + rng.choice((0, 1, 50, 100, 101, 900, 5000, 30_000)) * rng.choice((0, MILLISECOND))
            delay = rng.randrange(LATEST) if rng.random() < late else 0
            drawn.append((ts + delay, ts, _values(rng, keys, index * 1000 + number)))
        drawn.sort(key=lambda row: row[0])
        greatest = needed = 0
        for position, (due, ts, values) in enumerate(drawn):
            greatest = max(greatest, ts)
            needed = max(needed, greatest - ts)
            arrivals.append((due, index * 1000 + position, name, {**values, "ts": BEGIN + ts}))
        lateness = rng.choice((needed, needed, LATEST, 0, 5 * SECOND))
        idle = rng.choice((10 * SECOND, 2 * MINUTE, 15 * MINUTE)) if rng.random() < 0.5 else None
        streams.append(StreamSpec(name, schema(time), "ts", lateness, idle))
    arrivals.sort(key=lambda row: row[:2])
    return tuple(streams), [(name, values) for _, _, name, values in arrivals]


def _values(rng: Random, keys: int, unique: int) -> dict[str, Any]:
    return {
        "k": rng.choice((None, *range(keys)) if rng.random() < 0.1 else range(keys)), "n": rng.randrange(keys),
        "s": rng.choice(WORDS[: keys + 1]), "d": rng.choice(NUMBERS), "m": None, "day": None,
        "ok": rng.choice((True, False)), "u": unique,
    }  # fmt: skip


def _life(rng: Random, of: Family, name: str, steps: int, busy: Busy) -> list[Action]:
    """A query that comes, changes and moves several times, perhaps in one step, and perhaps goes and comes back."""
    since = 0 if rng.random() < 0.6 else busy.step(0, steps)
    until = steps if rng.random() < 0.75 or since + 1 == steps else busy.step(since + 1, steps)
    asked, manner = of.member(rng)
    assert asked.want is not None
    found: list[Action] = [Add(since, name, asked, rng.random() < 0.9)]
    inner: list[Action] = []
    for _ in range(rng.choice((0, 1, 2, 3))):
        inner.append(Change(busy.step(since, until), name, of.member(rng, manner, asked.want.plan)[0]))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        inner.append(_move(rng, of, name, manner, busy.step(since, until)))
    found += sorted(inner, key=lambda action: action.step)
    if until < steps:
        found.append(Drop(until, name))
        if rng.random() < 0.5:
            found.append(Add(busy.step(until, steps), name, of.member(rng)[0], rng.random() < 0.9))
    return found


def _move(rng: Random, of: Family, name: str, manner: Manner, step: int) -> Move:
    known: Mapping[str, int] = {s: OFTEN.get(s, 1) for s in strategies()}
    strategy = rng.choices(list(known), list(known.values()))[0]
    to = plan(rng, of.labels, FORMS.get(strategy, rng.choice(("tree", "tree", "stairs", "eddy", "orders"))))
    assert to is not None
    chosen = {option: value for option, value in options(rng, strategy).items() if option != "hold_new"}
    return Move(step, name, to.format(**manner.aliases), strategy, chosen, rng.random() < 0.4)
