"""The glossary is whole and lean: it explains the words of our own that the code uses, and they have become fewer."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.docs.pages import ROOT
from tests.test_architecture import MODULES, Module

FEWER = 20
"""By so many words at least the glossary is to be shorter than what a reader had to learn before."""

APART = ("lab", "demo", "cli")
"""Rooms that nobody needs to know in order to read the others."""


def table(heading: str) -> dict[str, str]:
    """The first column of the table under a heading, and the last."""
    text = (ROOT / "docs" / "glossary.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:2] == "| "]
    return {row[0]: row[-1] for row in rows if row[0] != "word"}


def names(cell: str) -> set[str]:
    """The names of code in a cell."""
    return set(re.findall(r"`([\w.]+)`", cell))


@cache
def defined() -> frozenset[str]:
    """What the source defines: modules, classes, functions, and members as `Class.member`."""
    found = {module.name.removeprefix("midstream.") for module in MODULES}
    for module in MODULES:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found |= {node.name} | {f"{node.name}.{member}" for member in _members(node)}
            elif isinstance(node, ast.FunctionDef):
                found.add(node.name)
    return frozenset(found)


def _members(kind: ast.ClassDef) -> set[str]:
    own = {n.name for n in kind.body if isinstance(n, ast.FunctionDef)}
    own |= {n.target.id for n in kind.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    return own | {
        n.attr
        for n in ast.walk(kind)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and getattr(n.value, "id", "") == "self"
    }


def crossing() -> set[str]:
    """The classes that one room takes from another: nobody can read the house without them."""
    home = {
        f"{module.name}.{node.name}": module
        for module in MODULES
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and _counts(module, node)
    }
    return {
        name.rpartition(".")[2]
        for module in MODULES
        for _, name in module.imports()
        if name in home and home[name].room != module.room and module.room != "__init__"
    }


def _counts(module: Module, node: ast.ClassDef) -> bool:
    plain = module.name in ("midstream.model.events", "midstream.model.errors", "midstream.model.ids")
    plain = plain or module.name.startswith("midstream.step.commands.")
    return not node.name.startswith("_") and not plain and module.room not in APART


def words_before() -> dict[str, str]:
    """The words of our own at the commit that the glossary is compared with, and where each stood."""
    lines = (ROOT / "tests" / "docs" / "words_before.txt").read_text().splitlines()
    rows = [re.split(r"\s{2,}", line) for line in lines if line and not line.startswith("#")]
    return {word: place.split(" ")[1] for word, place in rows}


def test_every_word_stands_for_something_in_the_code() -> None:
    words = {**table("Words"), **table("Words of the papers")}
    assert {word for word, where in words.items() if not names(where)} == set()
    assert {name for where in words.values() for name in names(where)} - defined() == set()


def test_every_class_that_a_room_takes_from_another_is_explained_or_means_what_it_means_elsewhere() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    plain = names(text.partition("\n## Plain names\n")[2].partition("\n## ")[0])
    places = [*table("Words").values(), *table("Words of the papers").values()]
    explained = {name.partition(".")[0] for where in places for name in names(where)}
    assert crossing() - explained - plain == set(), "a word of ours? or a plain name? say so in docs/glossary.md"
    assert plain - defined() == set()


def test_every_word_of_before_is_explained_still_or_has_retired() -> None:
    words, retired = set(table("Words")), set(table("Retired words"))
    assert words & retired == set()
    assert set(words_before()) - words - retired == set()
    assert retired - set(words_before()) == set()


def test_nothing_bears_the_name_of_a_retired_word() -> None:
    """But for a name that another word stands for now, and says so."""
    before = words_before()
    taken = defined() - {name for where in table("Words").values() for name in names(where)}
    assert {word: before[word] for word in table("Retired words") if before[word] in taken} == {}


def test_there_are_fewer_words_than_before() -> None:
    assert len(table("Words")) <= len(words_before()) - FEWER
