"""The suite for a form, another way to run a tree of joins: it gives what the tree gives in every course of events.

A plan never changes an answer (`docs/semantics.md`, invariant 1). So the suite runs queries by the form, carries them
to it and away from it by every strategy that accepts that, restarts them and changes the number of lanes, and holds
each step's part of the answer against DuckDB. States that bear one id must hold the same rows in the form and the tree.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pyarrow as pa

from midstream.embedded import Engine
from midstream.migration.strategy_contract import discovered
from midstream.model.errors import StrategyError
from midstream.operators.operator_form import OperatorForm, forms
from midstream.plan.notation import form_names
from midstream.testing.strategies import trees
from midstream.testing.suite import STEP, DrawnJoin, Family, Oracle, draw_rows, installed, located

STEPS = 7
BY_FORM, BY_TREE = "by_form", "by_tree"


def check_operator(kind: type[OperatorForm], *, cases: int = 10, seed: int = 0) -> None:
    """Check that an operator form gives the answer of its join tree, and that the form's states have the right rows.

    The check runs `cases` random tests with the seeds `seed`, `seed + 1` and so on. If a test fails, the check raises
    an `AssertionError` that names the seed. The form must be in this package, or be registered as an entry point of the
    group `midstream.operators`.

    >>> from midstream.operators.forms.stairs_form import StairsForm
    >>> check_operator(StairsForm, cases=2)
    """
    assert kind.name in form_names(), f"no entry point of midstream.operators is called {kind.name!r}"
    with installed(forms(), kind.name, kind()):
        for number in range(seed, seed + cases):
            with located(f"{kind.name}, seed {number}"):
                _course(kind.name, Random(number))


def _course(name: str, rng: Random) -> None:
    # The form and its tree run the join each in an engine of its own.
    family = Family.draw(rng)
    join, plan = family.join(rng), trees(rng, family.streams)
    lanes = rng.choice((1, 2))
    engines = {BY_FORM: _begun(join, f"{name}({plan})", lanes), BY_TREE: _begun(join, plan, lanes)}
    calm = True
    with Oracle(join.streams) as oracle:
        for step in range(STEPS):
            tables = draw_rows(rng, join.streams, step)
            if step and rng.random() < 0.4:
                calm &= not _migrate(rng, engines[BY_FORM], join, name)
            if rng.random() < 0.15:
                engines[BY_FORM] = _restarted(engines[BY_FORM])
            answers = {which: engine.push(tables)["q"] for which, engine in engines.items()}
            oracle.push(tables, step)
            expected = oracle.answer(join, step)
            for which, answer in answers.items():
                with located(f"step {step}, {which}, {join.cql()}"):
                    _check_answer(answer, expected)
            if calm:
                with located(f"step {step}, {join.cql()}"):
                    _check_states(engines[BY_FORM], engines[BY_TREE])


def _begun(join: DrawnJoin, plan: str, lanes: int) -> Engine:
    engine = Engine(lanes=lanes)
    for name in join.streams:
        engine.create_stream(name, "u BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts", lateness=STEP)
    engine.add_query("q", join.cql(), plan=plan)
    return engine


def _migrate(rng: Random, engine: Engine, join: DrawnJoin, name: str) -> bool:
    plan = trees(rng, join.streams)
    for strategy in rng.sample(list(discovered()), len(discovered())):
        with suppress(StrategyError):
            engine.migrate("q", rng.choice((f"{name}({plan})", plan)), strategy)
            return True
    return False


def _restarted(engine: Engine) -> Engine:
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "saved")
        return Engine.load(Path(folder) / "saved")


def _check_answer(answer: pa.Table, expected: Counter[tuple[object, ...]]) -> None:
    times = answer["_ts"].cast(pa.int64())
    found = Counter(zip(*(column.to_pylist() for column in (*answer.columns[:-1], times)), strict=True))
    assert found == expected, f"lacks {dict(expected - found)}, has too many {dict(found - expected)}"
    assert times.to_pylist() == sorted(times.to_pylist()), "not in order of time"


def _check_states(form: Engine, tree: Engine) -> None:
    # Equal ids promise equal content: as many living rows in each state that both have.
    for lane, state in form.manifest.lane_states.items():
        other = tree.manifest.lane_states[lane].states
        for id in state.states.keys() & other.keys():
            mine, theirs = state.states[id].live, other[id].live
            assert mine == theirs, f"state {id} of {lane} holds {mine} rows, that of the tree {theirs}"
