"""The seeded faults fit the tree: each replaces a text that is in its file once."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from tests.mutants.faults import FAULTS, Fault
from tests.mutants.run import ROOMS, ROOT, SOURCE


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_its_file(fault: Fault) -> None:
    text = (SOURCE / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1, "the code has changed: make the same slip in the new code"
    ast.parse(text.replace(fault.old, fault.new))
    assert fault.tests and [test for test in fault.tests if not is_there(test)] == []


def is_there(test: str) -> bool:
    """Tell whether a path exists, and has the class or function that is named after it."""
    path, *names = test.split("::")
    return (ROOT / path).exists() and all(re.search(rf"(def|class) {n}\b", (ROOT / path).read_text()) for n in names)


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


def test_every_room_has_tests_that_exist() -> None:
    assert {fault.room for fault in FAULTS} <= ROOMS.keys()
    assert [test for tests in ROOMS.values() for test in tests if not (ROOT / test).exists()] == []
