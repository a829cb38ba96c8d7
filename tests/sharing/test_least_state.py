"""What is kept: no more than the widest query alone wants (Wang Theorem 5), no row that nobody wants (Theorem 6)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, note
from hypothesis import strategies as st

import midstream as ms
from tests.drawing import drawing
from tests.oracle.answer import connection
from tests.oracle.arrival import Arrivals, Lifetime, arrive
from tests.oracle.spec import Item
from tests.property.drive import Rescale, Restart
from tests.property.rows import Shape, cut, draw_rows
from tests.sharing.case import Action, Add, Case, Change, Drop
from tests.sharing.draw import LARGEST, cut_rows, shape_of
from tests.sharing.drive import run
from tests.sharing.family import Family, Want, family, plan
from tests.sharing.plain import asked
from tests.sharing.reproduction import reproduction

done: Counter[str] = Counter()


def draw(rng: Random, *, filters: bool) -> tuple[Case, Family]:
    """Rows in steps without queries, and a family with one plan."""
    names = "ABCD"[: rng.choice((2, 2, 3))]
    of = family(rng, names, filters=filters)
    shape = replace(shape_of(rng, len(names), LARGEST[len(of.labels)]), idle=None, nulls=rng.choice((0.0, 0.2)))
    streams, sequence = draw_rows(shape)
    steps = cut_rows(rng, streams, sequence)
    disturbances: list[Action] = []
    if rng.random() < 0.25:
        disturbances.append(Restart(rng.randrange(len(steps)), rng.random() < 0.5))
    if rng.random() < 0.2:
        disturbances.append(Rescale(rng.randrange(len(steps)), rng.choice((1, 2, 3))))
    case = Case(streams, steps, tuple(disturbances), "mem_opt", rng.choice((1, 1, 2, 3)))
    return case, replace(of, plans=(plan(rng, of.labels, rng.choice(("tree", "tree", "tree", "orders", "eddy"))),))


def with_actions(case: Case, actions: list[Action]) -> Case:
    """The case with more actions, in order of their steps."""
    return replace(case, actions=tuple(sorted((*actions, *case.actions), key=lambda action: action.step)))


@drawing(24, soak=40)
@given(st.integers(0, 2**40))
def test_the_state_of_all_is_that_of_the_widest_alone(seed: int) -> None:
    """Theorem 5, in rows, after every step, whoever comes and goes beside the widest."""
    rng = Random(seed)
    case, of = draw(rng, filters=False)
    widest = {label: max(windows[label] for windows in of.windows) for label in of.labels}
    first, _ = replace(of, windows=(widest,)).member(rng)
    actions: list[Action] = [Add(0, "widest", first)]
    for number in range(rng.choice((1, 2, 4, 7))):
        since = 0 if rng.random() < 0.5 else rng.randrange(len(case.steps))
        asked, manner = of.member(rng)
        actions.append(Add(since, f"q{number}", asked))
        if rng.random() < 0.3:
            other = of.member(rng, manner, of.plans[0] or "")[0]
            actions.append(Change(rng.randrange(since, len(case.steps)), f"q{number}", other))
        if rng.random() < 0.4 and since + 1 < len(case.steps):
            actions.append(Drop(rng.randrange(since + 1, len(case.steps)), f"q{number}"))
    case = with_actions(case, actions)
    try:
        check_widest(case)
    except Exception:
        note(reproduction(case, check_widest))
        raise


def check_widest(case: Case) -> None:
    """Fail unless after each step the state is that of the widest query alone."""
    others = {"widest", None}
    alone = replace(case, actions=tuple(a for a in case.actions if getattr(a, "query", None) in others))
    found, expected = state_rows(case), state_rows(alone)
    assert found == expected, f"state rows {found}, of the widest alone {expected}"
    done["kept without filters"] += sum(expected) > 0


def state_rows(case: Case) -> list[int]:
    """The rows and combinations alive after each step."""
    found: list[int] = []
    run(case, lambda engine, _: found.append(engine.metrics()["state_rows"]))
    return found


@drawing(30, soak=40)
@given(st.integers(0, 2**40))
def test_every_row_kept_is_selected_by_some_query(seed: int) -> None:
    """Theorem 6, row by row: the rows that pass some filter and are in the window of the widest such query."""
    rng = Random(seed)
    case, of = draw(rng, filters=True)
    actions: list[Action] = []
    for number in range(rng.choice((1, 2, 3, 5))):
        asked, manner = of.member(rng)
        items = tuple(Item(f"{manner.aliases[label]}.u", f"u{place}") for place, label in enumerate(of.labels))
        asked = replace(asked, spec=replace(asked.spec, select=items))
        actions.append(Add(0, f"q{number}", asked))
        if number and rng.random() < 0.3 and len(case.steps) > 1:
            actions.append(Drop(rng.randrange(1, len(case.steps)), f"q{number}"))
    case = with_actions(case, actions)
    try:
        check_held(case, of)
    except Exception:
        note(reproduction(case, lambda smaller: check_held(smaller, of)))
        raise


def check_held(case: Case, of: Family) -> None:
    """Fail unless after each step exactly those rows and combinations are alive that some query wants."""
    live: dict[str, Want] = {}
    held: list[Mapping[str, tuple[int, Counter[int]]]] = []
    joined: list[int] = []
    wanted_in: list[list[Want]] = []

    def watch(engine: ms.Engine, step: int) -> None:
        held.append({label: held_rows(engine, label) for label in of.labels})
        joined.append(engine.metrics()["state_rows"] - sum(alive for alive, _ in held[-1].values()))
        for action in case.actions:
            if isinstance(action, Add) and action.step == step and action.asked.want:
                live[action.query] = action.asked.want
            if isinstance(action, Drop) and action.step == step:
                live.pop(action.query, None)
        wanted_in.append(list(live.values()))

    run(case, watch)
    lives = [Lifetime(a.query, a.asked.spec) for a in case.actions if isinstance(a, Add)]
    arrivals = arrive(case.streams, case.steps, lives)
    streams = frozenset(label[0] for label in of.labels)
    for step, (states, wants) in enumerate(zip(held, wanted_in, strict=True)):
        for label, (alive, stored) in states.items():
            wanted = wanted_rows(arrivals, label, wants, streams, step)
            missing = wanted - set(stored)
            assert not missing, f"rows {sorted(missing)} of {label} are wanted and gone after step {step}"
            assert alive == len(wanted), f"{alive} rows of {label} are alive after step {step}, wanted {sorted(wanted)}"
            assert max(stored.values(), default=1) == 1, f"rows of {label} are held twice after step {step}: {stored}"
            done["rows kept"] += alive
            done["rows given up"] += arrivals.admitted[label[0]].num_rows - alive
        combined = sum(wanted_combinations(arrivals, of, at, wants, step) for at in inner(of.plans[0] or ""))
        # A state leaves out what has NULL for a key, which nothing will ever meet.
        exact = joined[step] == combined or (any_null(case) and joined[step] < combined)
        assert exact, f"{joined[step]} combinations are alive after step {step}, wanted {combined}"
        done["combinations kept"] += combined


def held_rows(engine: ms.Engine, label: str) -> tuple[int, Counter[int]]:
    """How many base rows of a source are alive, and how often each (by `u`) is in a chunk that is listed."""
    alive, stored = 0, Counter[int]()
    for lane in engine.manifest.lane_states.values():
        for state_id, listing in lane.states.items():
            if state_id.is_base and state_id.owner.partition(".")[0].replace("#", "") in (
                label,
                f"{label[0]}{label.lower()}",
            ):
                alive += listing.live
                for ref in listing.chunks:
                    stored.update(engine._store.get(ref).column("u").to_pylist())
    return alive, stored


def wanted_rows(arrivals: Arrivals, label: str, wants: list[Want], streams: frozenset[str], step: int) -> set[int]:
    """The rows that some query of this step wants: those of the step, and those that a row to come may still meet."""
    connection().register("arrived", rows_until(arrivals, label[0], step))
    watermark = arrivals.query_watermark(streams, step - 1)
    found: set[int] = set()
    for want in wants:
        kind, size = want.windows[label]
        filters = [text.format(**{label: "arrived"}) for text in want.filters if f"{{{label}}}" in text]
        filters += [text for text in want.filters if "{" not in text]
        if kind == "rows":
            filters.append(
                f"(__step = {step} OR __number > (SELECT count(*) FROM arrived WHERE __step < {step}) - {size})"
            )
        elif watermark is not None:
            filters.append(f"(__step = {step} OR __ts + {size} >= {watermark})")
        where = f" WHERE {' AND '.join(f'({f})' for f in filters)}" if filters else ""
        found |= {row[0] for row in connection().sql(f"SELECT u FROM arrived{where}").fetchall()}
    return found


def wanted_combinations(arrivals: Arrivals, of: Family, labels: Sequence[str], wants: list[Want], step: int) -> int:
    """How many combinations of these sources some query wants, that a row to come may still meet."""
    streams = frozenset(label[0] for label in of.labels)
    watermark = arrivals.query_watermark(streams, step - 1)
    for number, label in enumerate(labels):
        connection().register(f"arrived_{number}", rows_until(arrivals, label[0], step))
    names, here = {label: label for label in of.labels}, set(labels)
    found: set[tuple[int, ...]] = set()
    time = f"greatest({', '.join(f'{label}.__ts' for label in labels)})"
    for want in wants:
        texts = [t.format(**names) for t in (*of.ties, *want.filters) if {n for n in names if f"{{{n}}}" in t} <= here]
        for label in labels:
            kind, size = want.windows[label]
            if kind == "range":
                texts.append(f"{time} - {label}.__ts <= {size}")
                if watermark is not None:
                    texts.append(f"{label}.__ts + {size} >= {watermark}")
            else:
                counted = ", ".join(f'{other}."__count_{label[0]}"' for other in labels)
                before = f"(SELECT count(*) FROM arrived_{labels.index(label)} WHERE __step < {step})"
                texts += [f"greatest({counted}) < {label}.__number + {size}", f"{label}.__number + {size} > {before}"]
        tables = ", ".join(f"arrived_{number} AS {label}" for number, label in enumerate(labels))
        columns = ", ".join(f"{label}.u" for label in labels)
        where = f" WHERE {' AND '.join(f'({text})' for text in texts)}" if texts else ""
        found |= set(connection().sql(f"SELECT {columns} FROM {tables}{where}").fetchall())
    return len(found)


def any_null(case: Case) -> bool:
    """Whether a column that joins may ask for is NULL anywhere."""
    return any(table.column(name).null_count for step in case.steps for table in step.values() for name in "knsd")


def inner(plan: str) -> list[list[str]]:
    """The sources below each join of a tree but the topmost; nothing below an operator that has no states.

    >>> inner("((({A} {B}) {C}) {D})")
    [['A', 'B'], ['A', 'B', 'C']]
    """
    if not plan.startswith("("):
        return []
    opened: list[int] = []
    found: list[list[str]] = []
    for place, sign in enumerate(plan):
        if sign == "(":
            opened.append(place)
        elif sign == ")":
            found.append(sorted(re.findall(r"{(\w+)}", plan[opened.pop() : place])))
    return found[:-1]


def rows_until(arrivals: Arrivals, stream: str, step: int) -> pa.Table:
    """The rows of a stream that had been admitted by the end of a step."""
    rows: Any = arrivals.admitted[stream]
    return rows.filter(pc.less_equal(rows["__step"], step))


def test_rows_of_a_query_that_went_before_its_other_stream_spoke() -> None:
    """There is no watermark yet, and still nobody wants them."""
    streams, sequence = draw_rows(Shape(5, (9, 0), span=4, keys=3, nulls=0.0))
    steps = cut(streams, sequence, (60,))
    case = Case(
        streams, steps, (Add(0, "some", asked("AB", 3, "A.k > 0")), Add(0, "all", asked("AB", 3)), Drop(1, "all"))
    )
    found = run(replace(case, sharing="mem_opt"))
    wanted = [k for step in steps for k in step["A"].column("k").to_pylist() if k > 0]
    assert found.engine.metrics()["state_rows"] == len(wanted) < 9


def test_rows_were_kept_and_given_up() -> None:
    """Runs after the tests above, which would pass if nothing were ever kept."""
    if done:
        assert done["kept without filters"] > 1, done
        assert done["rows kept"] > 100 and done["rows given up"] > 100, done
