"""Schemes are found by looking, and known to no other file by name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import midstream
from midstream.model.errors import QueryError
from midstream.model.manifest import DEFAULT_SHARING
from midstream.sharing.schemes.scheme_contract import scheme, schemes

SOURCE = Path(midstream.__file__).parent


@pytest.mark.parametrize("name", schemes())
def test_each_scheme_is_had_by_its_name(name: str) -> None:
    assert scheme(name).name == name


@pytest.mark.parametrize("name", ["sideways", "", "OFF", None, 3, ["auto"]])
def test_an_unknown_scheme_is_refused_where_it_was_named(name: object) -> None:
    with pytest.raises(QueryError, match=r"unknown sharing .* \(at Engine\)\. Remedy: use one of: auto, cpu_opt"):
        scheme(name, "Engine")


def test_the_default_is_a_scheme() -> None:
    assert DEFAULT_SHARING in schemes()


def test_no_other_file_names_a_scheme() -> None:
    """But for the default, for the lab, whose figures say which schemes they are of.

    A mode of the optimizer is called `off`, too, and so is a query that is not spread over nodes.
    """
    names = schemes().keys() - {DEFAULT_SHARING}
    exempt = {"schemes", "lab", "optimization.py", "node_spread.py", "review", "proposals"}
    files = [path for path in SOURCE.rglob("*.py") if not exempt & {*path.relative_to(SOURCE).parts}]
    named = {
        str(path.relative_to(SOURCE)): node.value
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    }
    assert not named and len(files) > 100
