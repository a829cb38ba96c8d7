"""What midstream says of queries and plans, held against the texts beside this file; each case is run, too.

The rows of a case come in four steps; where it has an old plan, it migrates from that before the third. Its answer
must be the oracle's. To write the texts anew after a change that is meant, and then to read the difference:

    MIDSTREAM_GOLDEN=write pytest tests/golden
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.golden.cases import Golden, golden_cases, rewrite, says, spec_of
from tests.oracle.arrival import Lifetime
from tests.oracle.compare import assert_same
from tests.property.drive import Case, Migrate, run
from tests.property.rows import Shape, cut, draw_rows

CASES = tuple(golden_cases())
STREAMS, ROWS = draw_rows(Shape(seed=11, sizes=(26,) * 5, span=18, keys=3, disorder=2))
STEPS = cut(STREAMS, ROWS, (25, 50, 75))
WRITE = os.environ.get("MIDSTREAM_GOLDEN") == "write"


@pytest.mark.parametrize("case", CASES, ids=[f"{case.file.removesuffix('.txt')}: {case.title}" for case in CASES])
def test_a_golden_case_says_what_its_text_says_and_answers_as_the_oracle(case: Golden) -> None:
    queries = tuple(Lifetime(f"q{number}", spec_of(text)) for number, text in enumerate((case.query, *case.also)))
    asked = Case(STREAMS, STEPS, queries)
    moves = [Migrate(2, "q0", case.plan, "moving_state")] if case.old else []
    found = run(asked, {"q0": case.old or case.plan}, moves, sharing=case.sharing)
    assert not found.refused
    for name, answer in asked.expected().items():
        assert answer.table.num_rows, f"{name} has no answer to compare"
        assert_same(found.outputs[name], answer, f"{case.title}, {name}")
    said = says(case, STREAMS, found.engine)
    if WRITE:
        rewrite(case, said)
    else:
        assert said == case.said, "if the change is meant: MIDSTREAM_GOLDEN=write pytest tests/golden"


def test_the_cases_have_names_of_their_own_and_cover_every_form() -> None:
    titles = Counter(f"{case.file} {case.title}" for case in CASES)
    assert max(titles.values()) == 1
    texts = [f"{case.plan} {case.query}" for case in CASES]
    for word in ("stairs(", "eddy(", "eddy:rank(", "[A: ", "EXCEPT ON", "EVERY", "ROWS", "RANGE", "GROUP BY", "ABS("):
        assert any(word in text for text in texts), f"no golden case has {word}"
    assert {case.sharing for case in CASES} >= {"off", "auto"}
