"""Random cases, each from one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tests.conformance.trips import options, strategies
from tests.oracle.arrival import Step
from tests.oracle.spec import SECOND, StreamSpec
from tests.property.drive import Rescale, Restart
from tests.property.rows import TIME_TYPES, Pushed, Shape, cut, draw_rows
from tests.sharing.case import Action, Add, Case, Change, Drop, Move, Reshare
from tests.sharing.family import Asked, Family, Manner, beside, family, plan

MODES = ("auto", "mem_opt", "cpu_opt", "pull_up", "push_down", "off")
LARGEST = {2: 40, 3: 20, 4: 11}
"""The most rows a stream has, by the number of sources of the largest join."""

DAY = 86_400 * SECOND
FORMS = {"m_join": "orders", "cacq": "eddy", "stairs": "stairs", "jisc_stairs": "stairs"}
"""The form of plan that a strategy leads to, where it leads to one alone."""

TAIL = 8
"""So many rows come once more a day later: by then all that was old is spent."""


def case(seed: int, *, modes: Sequence[str] = MODES, covered: bool = False) -> Case:
    """A case: one family or two of members that come, go and change, and others beside them.

    Where it is `covered` the widest query of a family runs from the first step on and no plan changes: whoever comes
    later finds all that it asks for.
    """
    rng = Random(seed)
    names = "ABCD"[: rng.choice((2, 2, 3, 3, 4))]
    families = [family(rng, names) for _ in range(rng.choice((1, 1, 1, 2)))]
    shape = shape_of(rng, len(names), LARGEST[max(len(f.labels) for f in families)])
    streams, sequence = draw_rows(shape)
    steps = cut_rows(rng, streams, sequence if rng.random() < 0.6 else _again(sequence))
    actions: list[Action] = []
    for number in range(rng.choice((2, 3, 3, 4, 5, 6, 8))):
        actions += _life(rng, rng.choice(families), f"q{number}", len(steps))
    if rng.random() < 0.3:
        actions.append(Add(rng.randrange(len(steps)), "aside", beside(rng, names)))
    if rng.random() < 0.25:
        actions += [Restart(rng.randrange(len(steps)), rng.random() < 0.5) for _ in range(rng.choice((1, 2)))]
    if rng.random() < 0.2:
        actions += [Rescale(rng.randrange(len(steps)), rng.choice((1, 2, 3)))]
    sharing = rng.choice(modes)
    if rng.random() < 0.15:
        others = [mode for mode in MODES if mode != "off" or sharing == "off"]
        actions.append(Reshare(rng.randrange(len(steps)), rng.choice(others)))
    if covered:
        calm = [action for action in actions if not isinstance(action, Move | Reshare)]
        actions = [Add(0, "widest", _widest(rng, families[0])), *calm]
    ordered = sorted(actions, key=lambda action: (action.step, rng.random() if isinstance(action, Rescale) else 0))
    return Case(streams, steps, tuple(ordered), sharing, rng.choice((1, 1, 1, 2, 3)), shape.in_order)


def _life(rng: Random, of: Family, name: str, steps: int) -> list[Action]:
    """A member's coming, changing, moving and going; and perhaps another one under its name."""
    since = 0 if rng.random() < 0.45 else rng.randrange(steps)
    until = steps if rng.random() < 0.6 else rng.randrange(since + 1, steps + 1)
    asked, manner = of.member(rng)
    found: list[Action] = [Add(since, name, asked, rng.random() < 0.9)]
    if rng.random() < 0.35:
        for _ in range(rng.choice((1, 1, 2))):
            assert asked.want is not None
            found.append(Change(rng.randrange(since, until), name, of.member(rng, manner, asked.want.plan)[0]))
    if rng.random() < 0.25:
        for _ in range(rng.choice((1, 1, 2))):
            found.append(_move(rng, of, name, manner, rng.randrange(since, until)))
    if until < steps:
        found.append(Drop(until, name))
        if rng.random() < 0.4:
            found.append(Add(rng.randrange(until, steps), name, of.member(rng)[0], rng.random() < 0.9))
    return found


def _widest(rng: Random, of: Family) -> Asked:
    """A member with no filter, and the largest of all windows on each stream."""
    windows = {label: max(windows[label] for windows in of.windows) for label in of.labels}
    return replace(of, filters=(), windows=(windows,)).member(rng)[0]


def _move(rng: Random, of: Family, name: str, manner: Manner, step: int) -> Move:
    strategy = rng.choice(strategies())
    form = FORMS.get(strategy, rng.choice(("tree", "tree", "tree", None)))
    to = plan(rng, of.labels, form) or plan(rng, of.labels, "tree")
    assert to is not None
    chosen = {name: value for name, value in options(rng, strategy).items() if name != "hold_new"}
    return Move(step, name, to.format(**manner.aliases), strategy, chosen, rng.random() < 0.4)


def shape_of(rng: Random, streams: int, largest: int) -> Shape:
    manner = rng.choice(("in", "in", "timely", "late"))
    full = rng.random() < 0.75
    sizes = [largest if full else rng.randrange(largest + 1) for _ in range(streams)]
    if rng.random() < 0.08:
        sizes[rng.randrange(streams)] = 0
    leads = tuple(rng.choice((0, 0, 3, 20)) for _ in sizes) if manner != "in" and rng.random() < 0.4 else ()
    return Shape(
        seed=rng.randrange(2**20),
        sizes=tuple(sizes),
        span=rng.choice((4, 10, 20)),
        keys=rng.choice((4, 3, 2, 2, 1) if largest > 20 else (3, 2, 2)),
        nulls=rng.choice((0.1, 0.0, 0.3)),
        skew=rng.random() < 0.5,
        jitter=rng.random() < 0.5,
        disorder=0 if manner == "in" else rng.choice((2, 4, 10)),
        leads=leads,
        slack=rng.choice((0, 1, 3)) if manner == "late" else None,
        idle=rng.choice((2, 6)) if rng.random() < 0.15 else None,
        time=rng.choice(TIME_TYPES),
    )


def cut_rows(rng: Random, streams: tuple[StreamSpec, ...], sequence: Pushed) -> tuple[Step, ...]:
    """Three to nine steps; doubled cuts make empty ones."""
    drawn = [rng.randrange(101) for _ in range(rng.choice((2, 3, 4, 5, 6, 8)))]
    cuts = tuple(rng.choice(drawn) if rng.random() < 0.15 else place for place in drawn)
    return cut(streams, sequence, cuts, bare=rng.random() < 0.5)


def _again(sequence: Pushed) -> Pushed:
    last = [(name, {**row, "ts": row["ts"] + DAY, "u": row["u"] + 500}) for name, row in sequence[-TAIL:]]
    return sequence + last
