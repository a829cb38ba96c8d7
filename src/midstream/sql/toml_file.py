"""Tables of a TOML file under reading: where each key stands, values of the environment, files that are included."""

from __future__ import annotations

import os.path
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from midstream.expr.duration import parse_duration
from midstream.model.errors import LanguageError
from midstream.model.words import alike, suggest

Path = tuple[str, ...]
"""The keys from the top of a file down to a table or a value."""

_VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})")
_HEADER = re.compile(r"\s*\[\[?\s*(.+?)\s*\]?\]\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_NAME = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_QUOTES = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True)
class TomlText:
    """The content of a TOML file, what the file is called, the line of each key, and the faults found so far."""

    content: Mapping[str, Any]
    where: str
    lines: Mapping[Path, int] = field(default_factory=dict)
    faults: list[tuple[Path, LanguageError]] = field(default_factory=list)

    @staticmethod
    def of(text: str, where: str, environ: Mapping[str, str]) -> TomlText:
        """The content of a text, with the values of the environment that it names.

        Raises a `LanguageError` where it is not TOML. A variable that is not set is one of the `faults`.
        """
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            message, _, spot = str(error).partition(" (at ")
            place = f"{where}, {spot.rstrip(')')}" if spot else where
            raise LanguageError(
                f"the job file is not TOML: {message}", place=place, remedy="correct it there"
            ) from error
        found = TomlText({}, where, key_lines(text))
        return replace(found, content={key: found._expanded(value, (key,), environ) for key, value in content.items()})

    def _expanded(self, value: Any, path: Path, environ: Mapping[str, str]) -> Any:
        """Return a value with `${NAME}` and `${NAME:-default}` replaced in its texts; `$$` is a dollar sign."""
        if isinstance(value, dict):
            return {key: self._expanded(one, (*path, key), environ) for key, one in value.items()}
        if isinstance(value, list):
            return [self._expanded(one, path, environ) for one in value]
        if not isinstance(value, str):
            return value

        def known(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if name is None:
                return "$"
            if name in environ:
                return environ[name]
            if default is None:
                line = _line_of(self.lines, path)
                error = LanguageError(
                    f"the environment has no variable {name}",
                    place=", ".join(
                        part for part in (self.where, f"line {line}" if line else "", ".".join(path)) if part
                    ),
                    remedy=f"set it, or write a default: ${{{name}:-...}}",
                )
                self.faults.append((path, error))
                return match[0]
            return default

        return _VARIABLE.sub(known, value)

    def faults_by_line(self) -> list[LanguageError]:
        """The faults in the order of their lines; what is missing stands where its table does."""
        return [fault for _, fault in sorted(self.faults, key=lambda one: _line_of(self.lines, one[0]) or 0)]

    def table(self, *path: str) -> TomlTable:
        """A table of it, at the top without a path."""
        content: Any = self.content
        for key in path:
            content = content[key]
        return TomlTable(content, self, path)


class TomlTable:
    """A table under reading: its place, and the keys that are `known` because they have been asked for.

    What is wrong is added to the faults of the text, so that all of it is found.
    """

    def __init__(self, content: Mapping[str, Any], text: TomlText, path: Path = ()) -> None:
        self.content, self.text, self.path = content, text, path
        self.known: list[str] = []
        self._missing: dict[str, str] = {}  # By key an example of its value.

    def has_fault(self, key: str) -> bool:
        """Whether something is wrong with what stands under a key of it."""
        within = (*self.path, key)
        return any(path[: len(within)] == within for path, _ in self.text.faults)

    def place(self, key: str | None = None) -> str:
        """Where the table, or a key of it, stands: the file, the line, the table, the key."""
        line = _line_of(self.text.lines, (*self.path, *(() if key is None else key.split("."))))
        table = f"[{'.'.join(self.path)}]" if self.path else ""
        parts = (self.text.where, f"line {line}" if line else "", table, key or "")
        return ", ".join(part for part in parts if part)

    def fault(self, key: str, message: str, remedy: str) -> None:
        """Note what is wrong with a key."""
        error = LanguageError(f"{key} {message}", place=self.place(key), remedy=remedy)
        self.text.faults.append(((*self.path, *key.split(".")), error))

    def get(self, key: str, kind: type, what: str, default: Any) -> Any:
        """The value of a key, which must be of a kind; the default where it is not, or the key is not there."""
        self.known.append(key)
        value = self.content.get(key, default)
        if key in self.content and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            self.fault(key, f"is {value!r}", f"make it {what}")
            return default
        return value

    def required(self, key: str, kind: type = str, what: str = "a string", example: str = '"..."') -> Any:
        """A value that must be there; an empty one where it is not."""
        value = self.get(key, kind, what, None)
        if self.content.get(key, "") == "":
            self._missing[key] = example
        return kind() if value is None else value

    def path_of(self, path: str) -> str:
        """A path that the file names, which counts from the folder of the file; URLs stay as they are."""
        return path if _SCHEME.match(path) or not path else os.path.join(os.path.dirname(self.text.where), path)

    def duration(self, key: str) -> int | None:
        """A length of time in microseconds, or None."""
        value = self.get(key, str | int, "a duration such as '5 seconds'", None)  # type: ignore[arg-type]
        return None if value is None else self.within(key, lambda: parse_duration(value))

    def tables(self, key: str) -> Iterator[tuple[str, TomlTable]]:
        """The tables of a table of tables, by name."""
        found = self.get(key, dict, "a table of tables", {})
        for name, content in found.items():
            if isinstance(content, dict):
                yield name, TomlTable(content, self.text, (*self.path, key, name))
            else:
                self.fault(f"{key}.{name}", "is not a table", f"write [{key}.{name}]")

    def within(self, key: str, read: Callable[[], Any]) -> Any:
        """What `read` gives, or None; its errors get this table's place put before theirs."""
        try:
            return read()
        except LanguageError as error:
            self.note(key, [error])
            return None

    def note(self, key: str, faults: Iterable[LanguageError]) -> None:
        """Record faults within the value of a key, with the place of the key before each place."""
        for fault in faults:
            place = self.place(key) + (f", {fault.place}" if fault.place else "")
            located = LanguageError(fault.message, place=place, remedy=fault.remedy)
            self.text.faults.append(((*self.path, key), located))

    def close(self, whole: bool = True) -> None:
        """Note keys that nobody has asked for, and required ones that are missing if this is the `whole` table.

        One that is misspelled is not missing.
        """
        for key in self.content:
            if key not in self.known:
                self.fault(key, "is unknown here", suggest(key, self.known))
                for name in alike(key, self.known):
                    self._missing.pop(name, None)
        for key, example in self._missing.items() if whole else ():
            self.fault(key, "is missing", f"add {key} = {example}")


def key_lines(text: str) -> dict[Path, int]:
    r"""The line, from 1 on, of each table and of each key that begins a line.

    >>> key_lines('a = 1\n\n[t."x y"]\nb.c = 2  # more\n')
    {('a',): 1, ('t', 'x y'): 3, ('t', 'x y', 'b', 'c'): 4}
    """
    found: dict[Path, int] = {}
    table: Path = ()
    within: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if within is None:
            if header := _HEADER.match(line):
                table = _names(header[1])
                found.setdefault(table, number)
            elif key := _KEY.match(line):
                found.setdefault((*table, *_names(key[1])), number)
        for quotes in _QUOTES.findall(line):
            within = quotes if within is None else None if within == quotes else within
    return found


def _names(text: str) -> Path:
    return tuple(name.strip("\"'") for name in _NAME.findall(text))


def _line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
