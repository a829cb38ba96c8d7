"""Random cases worth keeping: together they reach every arc of the code that any case reached.

`python -m tests.corpus --minutes 20` draws cases of every suite, measures which arcs (branch coverage) of the rooms
`ROOMS` each reaches, and writes the numbers of those that are needed into `corpus.json`; it needs `coverage`.
`tests/property/test_corpus.py` runs what is kept. A number makes a case as long as what the suite draws stays as it is:
after such a change run this again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.sharing.draw import case as set_of_queries
from tests.sharing.drive import run
from tests.sharing.everything import everything
from tests.sharing.judge import Judge

ROOT = Path(__file__).parent.parent
CORPUS = Path(__file__).with_name("corpus.json")
ROOMS = ("migration", "sharing", "ring", "operators", "state", "step")
BYTES = 1 << 14
"""As many as the largest case takes."""

DRAWN = (
    "test_answers_as_streams:test_answers_over_nodes_that_others_read",
    "test_answers_as_streams:test_answers_that_others_read",
    "test_auto_strategy:test_the_choice_changes_no_answer",
    "test_batch_and_lane_invariance:test_cuts_and_lanes_change_no_answer",
    "test_bounded_state:test_state_is_bounded_by_the_watermark",
    "test_features:test_some_beside_each_other",
    "test_migration_invariance:test_migrations_change_no_answer",
    "test_query_independence:test_queries_come_and_go_beside_a_query",
    "test_restart_invariance:test_restarts_change_no_answer",
    "test_shared_rings:test_answers_are_the_oracle_s",
    "test_spreads:test_answers_are_the_oracle_s",
)
"""Suites of tests/property that Hypothesis draws."""


def judged(draw: Callable[[int], Any]) -> Callable[[int], None]:
    """Return what runs a set of queries that a seed draws."""

    def check(seed: int) -> None:
        drawn = draw(seed)
        Judge(drawn, run(drawn)).check()

    return check


def drawn(name: str) -> Callable[[int], None]:
    """Return what runs a case of a suite, made of bytes that a number draws."""
    module, _, test = name.partition(":")
    run_bytes = getattr(import_module(f"tests.property.{module}"), test).hypothesis.fuzz_one_input
    return lambda number: run_bytes(Random(number).randbytes(BYTES))


def suites() -> dict[str, Callable[[int], None]]:
    """Return every suite by its name."""
    found = {name: drawn(name) for name in DRAWN}
    return {**found, "sharing:set_of_queries": judged(set_of_queries), "sharing:everything": judged(everything)}


def kept() -> list[tuple[str, int]]:
    """Return the corpus: suites and numbers."""
    return [(suite, number) for suite, numbers in json.loads(CORPUS.read_text()).items() for number in numbers]


def cases(names: list[str]) -> Iterator[tuple[str, int]]:
    """Yield what is kept, then new cases of all suites in turn without end."""
    known = set(kept()) if CORPUS.exists() else set()
    yield from sorted(known)
    for number in count(max((number for _, number in known), default=-1) + 1):
        yield from ((name, number) for name in names)


def main() -> None:
    """Look for cases that reach what no others do, and write them down."""
    from coverage import Coverage

    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=20)
    until = time.monotonic() + 60 * parser.parse_args().minutes
    measured = Coverage(data_file=None, branch=True, include=[f"{ROOT}/src/midstream/{room}/*" for room in ROOMS])
    measured.set_option("run:disable_warnings", ["no-data-collected"])
    checks, reached = suites(), dict[tuple[str, int], set[Any]]()
    for suite, number in cases(list(checks)):
        if time.monotonic() > until:
            break
        measured.erase()
        measured.start()
        try:
            checks[suite](number)
        except Exception:
            print(f"{suite} {number} fails")
            raise
        finally:
            measured.stop()
        data = measured.get_data()
        arcs = {(file, arc) for file in data.measured_files() for arc in data.arcs(file) or ()}
        if arcs:  # Of some bytes a suite makes no case.
            reached[suite, number] = arcs
    chosen = cover(reached)
    for name, found in Counter(suite for suite, _ in reached).items():
        print(f"{found:6} cases of {name}, {sum(suite == name for suite, _ in chosen)} of them kept")
    print(f"{len(reached)} cases reach {len(set().union(*reached.values()))} arcs, and so do the {len(chosen)} kept")
    CORPUS.write_text(
        json.dumps({name: [number for suite, number in chosen if suite == name] for name in checks}, indent=1) + "\n"
    )


def cover(reached: dict[tuple[str, int], set[Any]]) -> list[tuple[str, int]]:
    """Return cases that reach every arc: those that reach one alone, then others for what is still missing."""
    times = Counter(arc for arcs in reached.values() for arc in arcs)
    chosen = [case for case, arcs in reached.items() if any(times[arc] == 1 for arc in arcs)]
    missing = set(times).difference(*(reached[case] for case in chosen))
    while missing:
        chosen.append(max(reached, key=lambda case: len(reached[case] & missing)))
        missing -= reached[chosen[-1]]
    return sorted(chosen)


if __name__ == "__main__":
    main()
