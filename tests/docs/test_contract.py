"""The pages that list what there is: invariants with their tests, strategies, ways of sharing."""

from __future__ import annotations

import ast
import re

import midstream as ms
from midstream.model.manifest import FORMAT_SINCE, FORMAT_VERSION
from midstream.sharing.schemes.scheme_contract import schemes
from tests.docs.pages import ROOT, Page
from tests.test_architecture import MODULES

SEMANTICS = ROOT / "docs" / "semantics.md"


def invariants() -> dict[int, str]:
    """The numbered invariants of the contract, and what each is called."""
    section = SEMANTICS.read_text().partition("## The invariants")[2].partition("\n## ")[0]
    return {int(number): name for number, name in re.findall(r"^(\d+)\. \*\*(.+?)\.\*\*", section, re.MULTILINE)}


def test_invariants_are_numbered_without_a_gap() -> None:
    assert list(invariants()) == list(range(1, len(invariants()) + 1))
    assert len(invariants()) >= 7


def test_every_invariant_is_held_by_a_test_that_cites_it_and_no_other_is_cited() -> None:
    cited = {
        int(number)
        for path in (ROOT / "tests" / "property").glob("test_*.py")
        for number in re.findall(r"[Ii]nvariants? (\d+)", path.read_text())
    }
    assert cited == set(invariants())


def test_every_strategy_is_on_its_page_and_no_other_is() -> None:
    page = Page(ROOT / "docs" / "strategies.md")
    table = page.path.read_text().partition("|---")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {*ms.strategies(), "auto"}


def test_every_way_of_sharing_is_named_where_sharing_is_explained() -> None:
    code = set(Page(ROOT / "docs" / "sharing.md").code())
    assert {mode for mode in schemes() if mode not in code} == set()


def test_every_room_says_what_it_is_for_and_what_goes_in_and_out() -> None:
    rooms = {
        m.name: ast.get_docstring(m.tree) or ""
        for m in MODULES
        if m.path.name == "__init__.py" and m.name.count(".") == 1
    }
    named = {name for name, text in rooms.items() if re.search(r"^The room `", text)}
    vague = {
        name for name, text in rooms.items() if not name.endswith(".costs") and not ("In: " in text and "Out: " in text)
    }
    assert (named, vague) == (set(), set())


def test_the_changelog_says_which_checkpoints_open() -> None:
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| yes", (ROOT / "docs" / "changelog.md").read_text(), re.MULTILINE)
    assert rows == [(str(FORMAT_VERSION), FORMAT_SINCE)]
