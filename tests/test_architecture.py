"""The house rules of the source tree, held by reading it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "midstream"

LAYERS = (
    {"model"},
    {"expr"},
    {"logical"},
    {"sql"},
    {"plan"},
    {"state"},
    {"runtime"},
    {"operators", "admission"},
    {"optimizer"},
    {"migration", "ring", "sharing"},
    {"units"},
    {"proposals"},
    {"commands"},
    {"review"},
    {"step"},
    {"storage"},
    {"explain", "checkpoint", "sinks"},
    {"pipeline", "dashboard"},
    {"embedded"},
    {"spark", "lab", "testing"},
    {"cli", "demo"},
    {"__init__", "__main__"},
)
"""Bottom to top: a room imports its own layer and those below it, in no circle. A new room takes its place here."""

PURE_ROOMS = {
    "model", "expr", "logical", "sql", "plan", "state", "runtime", "operators", "admission", "optimizer", "migration",
    "ring", "sharing", "units", "proposals", "commands", "review", "step", "lab",
}  # fmt: skip
IMPURE_MODULES = {"time", "random", "secrets", "uuid", "threading", "asyncio"}


MOST_PARAMETERS = 8
MADE_FOR_USERS = {
    "cli/commands.py", "cli/optimizer_commands.py", "cli/run.py", "embedded/engine.py", "spark/job.py",
    "spark/running_job.py", "commands/controls.py",
}  # fmt: skip
"""Commands of the command line, and the methods of engines, jobs and runs."""


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
    assert {"model", "sql", "plan"} <= {m.room for m in MODULES}


def test_only_the_spark_room_imports_pyspark() -> None:
    assert not [
        f"{module.relative}:{line} imports {name}"
        for module in MODULES
        if module.room != "spark"
        for line, name in module.imports()
        if name.split(".")[0] in ("pyspark", "py4j")
    ]


def test_every_room_has_a_layer() -> None:
    assert not {m.room for m in MODULES if layer_of(m.room) < 0}, "give it one in LAYERS"


def test_imports_run_downwards() -> None:
    assert not [
        f"{module.relative}:{line} imports {name}"
        for module in MODULES
        for line, name in module.imports()
        if (room := room_of(name)) is not None
        and layer_of(room) > layer_of(module.room)
        # `midstream.Job` and friends live on the lid of the house; the topmost rooms may use it as any user does, and
        # the spark room ships the package as a whole.
        and not (room == "__init__" and module.room in ("spark", "cli", "demo"))
    ]


def test_no_room_imports_in_a_circle() -> None:
    """Rooms of one layer too; what the topmost rooms take from the lid is left out as above."""
    rooms: dict[str, set[str]] = {m.room: set() for m in MODULES}
    for module, others in module_imports().items():
        rooms[room_of(module) or ""] |= {room for o in others if (room := room_of(o)) is not None}
    assert not circles({room: others - {room, "__init__"} for room, others in rooms.items()})


def test_no_modules_import_in_a_circle() -> None:
    """Imports inside functions count: a circle that is put off until the call is one all the same."""
    assert not circles({m: others - {m, "midstream"} for m, others in module_imports().items()})


def test_circles_are_found() -> None:
    below = {"a": {"b", "c"}, "b": {"c"}, "c": set[str]()}
    assert circles(below) == []
    assert circles({**below, "c": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"c"}, "e": {"a", "c"}}) == [{"a", "b"}, {"c", "d"}]


def test_no_two_classes_bear_one_name() -> None:
    """Private ones aside: they are read where they stand."""
    assert not shared_names((str(m.relative), m.tree) for m in MODULES), "rename one of them"


def test_classes_of_one_name_are_found() -> None:
    one, other = ast.parse("class A: ...\nclass _P: ..."), ast.parse("class B:\n    class A: ...\nclass _P: ...")
    assert shared_names([("one.py", one)]) == {}
    assert shared_names([("one.py", one), ("other.py", other)]) == {"A": ["one.py", "other.py"]}


def test_nothing_prints() -> None:
    assert not [
        f"{module.relative}:{node.lineno} prints: make it an event"
        for module in MODULES
        if module.room != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def test_every_module_says_what_it_is() -> None:
    assert not [str(m.relative) for m in MODULES if not ast.get_docstring(m.tree)]


def test_nothing_is_pickled() -> None:
    assert not importers({"pickle", "dill", "shelve", "marshal"}, {m.room for m in MODULES})


def test_the_fold_knows_no_clock_and_no_chance() -> None:
    assert not importers(IMPURE_MODULES, PURE_ROOMS)


def test_no_cache_is_shared_by_the_engines_of_a_process() -> None:
    """Of pure rooms, the lab aside, which has no engines of users."""
    found = {
        f"{m.relative}:{name}"
        for m in MODULES
        if m.room in PURE_ROOMS - {"lab"}
        for name in (*cached_functions(m.tree), *empty_stores(m.tree))
    }
    # What users register of their own is not a cache: it is nowhere else.
    found.discard("expr/user_predicates.py:_KNOWN")
    # Filled while modules are loaded, by their own names.
    found -= {"model/allowed.py:_OPERATORS", "model/allowed.py:_SOURCES"}
    assert not found, "keep it with the value that it is of, or with the engine"


def test_caches_are_found() -> None:
    text = """
_KEPT: dict[str, int] = {}
NAMES = {"a": 1}
@lru_cache(maxsize=1)
def installed(): ...
@cache
def of(value): ...
class A:
    @staticmethod
    @functools.lru_cache(maxsize=9)
    def within(value): ...
_WEAK: WeakKeyDictionary[int, int] = WeakKeyDictionary()
@dataclass(frozen=True)
class F: ...
PLAIN = F()
OPENED = A(1, size=2)
"""
    assert [*cached_functions(ast.parse(text))] == ["of", "within"]
    assert [*empty_stores(ast.parse(text))] == ["_KEPT", "_WEAK", "OPENED"]


def cached_functions(tree: ast.Module) -> Iterator[str]:
    """Find the functions of some parameter whose results are kept for the process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and parameters(node):
            decorators = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
            names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in decorators}
            if names & {"cache", "lru_cache"}:
                yield node.name


def empty_stores(tree: ast.Module) -> Iterator[str]:
    """Find the variables of a module that begin as an empty container, or as an object of a class of the module that is
    not frozen: something fills them later.
    """
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef) and not is_frozen(node)}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        value, target = node.value, node.targets[0] if isinstance(node, ast.Assign) else node.target
        made = isinstance(value, ast.Call) and not value.args and not value.keywords
        empty = not getattr(value, "keys", True) if isinstance(value, ast.Dict) else False
        stores = {"dict", "list", "set", "defaultdict", "OrderedDict", "WeakKeyDictionary", "WeakValueDictionary"}
        called = value.func if isinstance(value, ast.Call) else None
        called = called.value if isinstance(called, ast.Subscript) else called
        name = getattr(called, "id", "")
        if isinstance(target, ast.Name) and (empty or (made and name in stores) or name in own):
            yield target.id


def is_frozen(node: ast.ClassDef) -> bool:
    """Return whether a class says that its instances do not change."""
    marks = [ast.unparse(one) for one in (*node.decorator_list, *node.bases)]
    return any("frozen=True" in one or one in ("NamedTuple", "Enum", "StrEnum", "Protocol", "str") for one in marks)


def test_no_function_takes_more_than_eight_parameters() -> None:
    """Those that users call aside."""
    assert not [
        f"{m.relative}:{node.lineno} {node.name} takes {len(parameters(node))}"
        for m in MODULES
        if str(m.relative) not in MADE_FOR_USERS
        for node in ast.walk(m.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(parameters(node)) > MOST_PARAMETERS
    ]


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names of a function's parameters, without the instance or class that it belongs to."""
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def module_imports() -> dict[str, set[str]]:
    """For each module the modules of the package that it imports anywhere, by their dotted names."""
    names = {m.name for m in MODULES}
    return {
        module.name: {
            next(known for known in _prefixes(name) if known in names)
            for _, name in module.imports()
            if name.split(".")[0] == "midstream"
        }
        for module in MODULES
    }


def _prefixes(dotted: str) -> Iterator[str]:
    parts = dotted.split(".")
    return (".".join(parts[:count]) for count in range(len(parts), 0, -1))


def circles(imports: Mapping[str, set[str]]) -> list[set[str]]:
    """The greatest sets whose members all reach one another, in order of their first member."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            following = imports.get(waiting.pop(), set()) - found
            found |= following
            waiting += following
        return found

    reach = {name: reached(name) for name in imports}
    return [
        circle
        for name in sorted(imports)
        if name == min(circle := {other for other in reach[name] if name in reach.get(other, ())}, default=None)
    ]


def shared_names(trees: Iterable[tuple[str, ast.Module]]) -> dict[str, list[str]]:
    """The public class names that are defined more than once, and where."""
    places: dict[str, list[str]] = {}
    for path, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def importers(packages: set[str], rooms: set[str]) -> list[str]:
    """Where modules of these rooms import one of these packages."""
    return [
        f"{module.relative}:{line} imports {name}"
        for module in MODULES
        if module.room in rooms
        for line, name in module.imports()
        if name.split(".")[0] in packages
    ]


def test_the_package_and_the_command_line_load_without_pyspark() -> None:
    program = (
        "import sys, midstream, midstream.cli.main; "
        "loaded = sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'py4j', 'duckdb', 'pandas'}); "
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
