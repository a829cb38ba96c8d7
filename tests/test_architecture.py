"""The house rules of the source tree, held by reading it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "midstream"

LAYERS = (
    {"model"},
    {"language", "plan", "state"},
    {"operators"},
    {"migration"},
    {"step"},
    {"explain", "checkpoint"},
    {"engine"},
    {"spark"},
    {"cli", "demo"},
    {"__init__", "__main__"},
)
"""Bottom to top: a room imports its own layer and those below it. A new room takes its place here first."""

MOST_LINES = 400

PURE_ROOMS = {"model", "plan", "operators", "migration", "step"}
IMPURE_MODULES = {"time", "random", "secrets", "uuid", "threading", "asyncio"}


@dataclass(frozen=True)
class Module:
    """A source file: its dotted name and its room (the first name under the package)."""

    path: Path

    @property
    def relative(self) -> Path:
        return self.path.relative_to(SOURCE)

    @property
    def name(self) -> str:
        parts = ["midstream", *self.relative.with_suffix("").parts]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        return self.relative.with_suffix("").parts[0]

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.path)

    def imports(self) -> Iterator[tuple[int, str]]:
        """Every import at any depth, lazy ones too, as (line, dotted name); relative ones are made absolute."""
        package = self.name.split(".") if self.path.name == "__init__.py" else self.name.split(".")[:-1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                origin = ".".join([*base, *([node.module] if node.module else [])])
                yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__") and node.args:
                argument = node.args[0]
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


MODULES = [Module(path) for path in sorted(SOURCE.rglob("*.py"))]
each_module = pytest.mark.parametrize("module", MODULES, ids=[m.name for m in MODULES])


def layer_of(room: str) -> int:
    return next((i for i, rooms in enumerate(LAYERS) if room in rooms), -1)


def room_of(dotted: str) -> str | None:
    """The room that an absolute import reaches, None for other packages."""
    parts = dotted.split(".")
    if parts[0] != "midstream":
        return None
    reached = parts[1] if len(parts) > 1 else "__init__"
    is_room = (SOURCE / reached).is_dir() or (SOURCE / f"{reached}.py").is_file()
    return reached if is_room else "__init__"


def test_the_tree_is_read() -> None:
    assert len(MODULES) > 15
    assert {"model", "language", "plan"} <= {m.room for m in MODULES}


@each_module
def test_only_the_spark_room_imports_pyspark(module: Module) -> None:
    if module.room == "spark":
        return
    found = [f"line {line}: {name}" for line, name in module.imports() if name.split(".")[0] in ("pyspark", "py4j")]
    assert not found


@each_module
def test_imports_run_downwards(module: Module) -> None:
    own = layer_of(module.room)
    assert own >= 0, f"room {module.room} has no layer: give it one in LAYERS"
    upward = [
        f"{module.relative}:{line} imports {name}"
        for line, name in module.imports()
        if (room := room_of(name)) is not None and layer_of(room) > own
    ]
    # `midstream.Job` and friends live on the lid of the house; the topmost rooms may use it as any user does, and
    # the spark room ships the package as a whole.
    if module.room in ("spark", "cli", "demo"):
        upward = [u for u in upward if room_of(u.rsplit(" ", 1)[1]) != "__init__"]
    assert not upward


@each_module
def test_no_file_is_too_long(module: Module) -> None:
    lines = len(module.path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{module.relative} has {lines} lines: take it apart"


@each_module
def test_nothing_prints(module: Module) -> None:
    if module.room == "cli":
        return
    found = [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not found, f"{module.relative} prints at lines {found}: make it an event"


@each_module
def test_every_module_says_what_it_is(module: Module) -> None:
    assert ast.get_docstring(module.tree), f"{module.relative} has no docstring"


@each_module
def test_nothing_is_pickled(module: Module) -> None:
    assert not [name for _, name in module.imports() if name.split(".")[0] in ("pickle", "dill", "shelve", "marshal")]


@each_module
def test_the_fold_knows_no_clock_and_no_chance(module: Module) -> None:
    if module.room not in PURE_ROOMS:
        return
    assert not [name for _, name in module.imports() if name.split(".")[0] in IMPURE_MODULES]


def test_the_package_and_the_command_line_load_without_pyspark() -> None:
    program = (
        "import sys, midstream, midstream.cli.main; "
        "loaded = sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'py4j', 'duckdb'}); "
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=_environment())


def test_every_room_but_spark_loads_without_pyspark() -> None:
    names = [m.name for m in MODULES if m.room not in ("spark", "__init__") and m.room != "__main__"]
    program = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        "assert 'pyspark' not in sys.modules, sorted(m for m in sys.modules if m.startswith('pyspark'))[:3]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
