"""Public names and their signatures equal the snapshot; `python -m tests.unit.test_public_api` writes it anew."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import midstream as ms
from midstream.spark.running_job import Run
from midstream.testing import check_operator, check_policy, check_scheme, check_sink, check_strategy

SNAPSHOT = Path(__file__).with_name("public_api.txt")


def signature(value: Any) -> str:
    """The parameters with their defaults; annotations are left out, because mypy holds them."""
    taken = inspect.signature(value)
    parameters = [p.replace(annotation=p.empty) for p in taken.parameters.values()]
    whole = str(taken.replace(parameters=parameters, return_annotation=taken.empty))
    return re.sub(r"<function (\S+) at 0x[0-9a-f]+>", r"\1", whole)


def lines_of(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        own = "" if issubclass(value, Exception) else signature(value)
        yield f"class {name}{own}"
        for member in sorted(m for m in dir(value) if not m.startswith("_")):
            found = inspect.getattr_static(value, member)
            if hasattr(BaseException, member):
                continue
            if isinstance(found, staticmethod | classmethod) or inspect.isfunction(found):
                yield f"  {name}.{member}{signature(getattr(value, member))}"
            else:
                yield f"  {name}.{member}"
    elif inspect.isroutine(value):
        yield f"def {name}{signature(value)}"
    else:
        yield f"module {name}" if inspect.ismodule(value) else name


def public() -> str:
    values = {f"ms.{name}": getattr(ms, name) for name in ms.__all__}
    values |= {"Run": Run, "ms.sinks": ms.sinks}
    values |= {f"ms.sinks.{name}": getattr(ms.sinks, name) for name in ms.sinks.__all__}
    checks = (check_operator, check_policy, check_scheme, check_sink, check_strategy)
    values |= {f"midstream.testing.{check.__name__}": check for check in checks}
    events = [
        name
        for name, kind in vars(ms.events).items()
        if inspect.isclass(kind) and kind.__module__ == ms.events.__name__
    ]
    values |= {f"ms.events.{name}": getattr(ms.events, name) for name in events if not name.startswith("_")}
    return "".join(f"{line}\n" for name in sorted(values) for line in lines_of(name, values[name]))


def test_public_names_and_signatures_equal_the_snapshot() -> None:
    assert public() == SNAPSHOT.read_text(), "python -m tests.unit.test_public_api, and a line in the changelog"


def test_a_parameter_that_is_renamed_changes_the_snapshot() -> None:
    assert list(lines_of("f", lambda a, *, b=1: None)) != list(lines_of("f", lambda a, *, c=1: None))


if __name__ == "__main__":
    SNAPSHOT.write_text(public())
