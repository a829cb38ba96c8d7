"""Plans drawn as text, letter by letter."""

from __future__ import annotations

from midstream.plan.tree import draw, pretty
from tests.unit.building import plan


def test_a_bushy_plan() -> None:
    assert pretty(plan("((A B) (C (D E)))")).splitlines() == [
        "join A B C D E",
        "├─ join A B",
        "│  ├─ A",
        "│  └─ B",
        "└─ join C D E",
        "   ├─ C",
        "   └─ join D E",
        "      ├─ D",
        "      └─ E",
    ]


def test_a_leaf_and_a_multi_way_join_are_one_line() -> None:
    assert pretty(plan("A")) == "A"
    assert pretty(plan("[A: B C | B: A C | C: B A]")) == "[A: B C | B: A C | C: B A]"


def test_labels_of_several_lines_keep_their_branch() -> None:
    below = {"one": ["two\nmore", "three"]}
    found = draw("one", lambda name: name, lambda name: below.get(name, []))
    assert found.splitlines() == ["one", "├─ two", "│  more", "└─ three"]
