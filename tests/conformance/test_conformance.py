"""Every strategy carries every query it accepts, at any step, by any options, amid anything, and no answer changes.

Processes side by side draw the cases. The tests after the first say that the cases were what they claim to be.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random

import pytest

from midstream.migration.strategy_contract import discovered
from midstream.migration.under_way.lasting import Lasting
from midstream.units.choose import AUTO
from tests.conformance.forms import FORMS
from tests.conformance.suite import Seen
from tests.conformance.trips import values_of
from tests.drawing import FIFTHS, SOAK
from tests.forked import Fork, Forks

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

LEAST = (5000 if SOAK else 60) // len(FIFTHS)
"""The cases of a fifth that every strategy has at least; some draws are of queries that some strategies refuse."""

SHARES = 8 if SOAK else 2
"""Each is a process of its own. Every number draws its own cases, soak new ones each time."""

DRAWS = LEAST + LEAST // 6

ALL: Seen = {}
"""What the fifths that ran had."""


@pytest.fixture
def seen(fifth: int) -> Seen:
    """What all strategies were put through by a fifth of the cases, and what it was like."""
    base = Random().randrange(2**30) if SOAK else 1 + fifth * SHARES
    forks = Forks("tests.conformance.suite")
    waiting = [(base + number, -(-DRAWS // SHARES)) for number in range(SHARES)]
    running: list[Fork] = []
    total: Seen = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            running.append(forks.start("tests.conformance.suite", *map(str, waiting.pop(0))))
        done = running.pop(0)
        out, said = done.communicate(7200)
        assert not done.returncode, said[-20_000:]
        for strategy, counted in json.loads(out).items():
            total.setdefault(strategy, Counter()).update(counted)
            ALL.setdefault(strategy, Counter()).update(counted)
    forks.close()
    return total


def test_no_answer_changes(seen: Seen) -> None:
    assert seen.keys() == {*discovered(), AUTO}
    assert not {name: told["cases"] for name, told in seen.items() if told["cases"] < LEAST * 2 / 3}


@pytest.fixture
def whole() -> Seen:
    """What four fifths or more of the cases were like; of one alone, chance says too much."""
    if min((told["cases"] for told in ALL.values()), default=0) < 3 * LEAST:
        pytest.skip("only `make verify` draws enough cases to say so")
    return ALL


def test_they_really_migrated(whole: Seen) -> None:
    """The test above would be green if nothing had to be carried."""
    for name, told in whole.items():
        assert told["moved"] > 0.7 * told["cases"], (name, told)
        assert told["ended"] > 0.3 * told["cases"], (name, told)
        if isinstance(discovered().get(name), Lasting):
            assert told["worked"] > 0.15 * told["cases"], (name, told)
    assert {"gpt", "hybmig", "parallel_track"} <= {
        n for n, told in whole.items() if told["lasted"] > 0.25 * told["cases"]
    }


def test_overlaps_and_options(whole: Seen) -> None:
    for name, told in whole.items():
        assert told["overlapping"] > 0.3 * told["cases"], (name, told)
        assert not [option for option in values_of(name) if told[f"with {option}"] < 0.2 * told["cases"]], (name, told)


def test_queries_changed_while_they_were_carried(whole: Seen) -> None:
    """Their windows of rows and of time, and their filters; also while migrations went on."""
    for name, told in whole.items():
        if name == "pause_drain_resume":
            continue  # It carries no join, and nothing else can be changed.
        assert told["changed"] > 0.1 * told["cases"], (name, told)
        assert told["changed rows"] > 0.02 * told["cases"], (name, told)
    sums = sum((told for name, told in whole.items() if name != "pause_drain_resume"), Counter[str]())
    assert sums["changed amid"] > max(0.03 * sums["cases"], LEAST), sums
    assert sums["changed rows"] > 0.06 * sums["cases"], sums


def test_from_and_to_every_form(whole: Seen) -> None:
    for form in FORMS:
        assert sum(told[f"from {form}"] for told in whole.values()) > 2 * LEAST, form
        assert sum(told[f"to {form}"] for told in whole.values()) > 2 * LEAST, form
    assert not [form for form in FORMS if not whole["hybmig"][f"from {form}"] or not whole["hybmig"][f"to {form}"]]
