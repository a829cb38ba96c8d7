"""JSON for the frozen values: one codec that reads a dataclass's fields and type hints.

What is written can be read again, by code that knows the type: nothing names a class to be loaded. Everything that a
checkpoint keeps as JSON, and everything that a task reports, goes through here.
"""

from __future__ import annotations

import base64
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import pyarrow as pa

from midstream.model.discovery import load_modules
from midstream.model.errors import CheckpointError

T = TypeVar("T")


class Tagged:
    """The base of values of several kinds, each a dataclass that derives from one base named with its `tag`.

    The kind is the class's name in snake case; written, a value carries it under the tag. Its fields are written out in
    full, because programs other than this one read them too; those of a `brief` family only where they differ from
    their default.

    >>> from midstream.model.events import LanesRescaled
    >>> encode(LanesRescaled(7, 1, 2))
    {'event': 'lanes_rescaled', 'step': 7, 'old': 1, 'new': 2}
    """

    tag: ClassVar[str]
    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Any]]]
    _brief: ClassVar[bool] = False
    _group: ClassVar[str] = ""

    def __init_subclass__(cls, tag: str = "", family: bool = False, brief: bool = False, group: str = "") -> None:
        """Register a kind: `tag` makes the base of new kinds, `family` a base among them that is not a kind itself.

        Modules that other packages declare as entry points of the `group` are imported before a kind is unknown.
        """
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        if tag:
            cls.tag, cls.kinds, cls._brief, cls._group = tag, {}, brief, group
        elif not family:
            cls.kinds[cls.kind] = cls


class Complete:
    """The base of values that are written in full and refused where a field is missing: an empty object is none."""


class Text:
    """The base of values that are written as one text, so that they can be the keys of a mapping."""

    def __str__(self) -> str:
        raise NotImplementedError

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the value from its text."""
        raise NotImplementedError


class OwnForm:
    """The base of values that define their own JSON, where fields would be too deep or too long."""

    def to_json(self) -> Any:
        """Encode the value as JSON values."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, value: Any) -> Any:
        """Decode what `to_json` wrote; raise an error of the kinds that `decode` lists for any other value."""
        raise NotImplementedError


class EncodedOnce:
    """The base of frozen dataclasses of which many stay from step to step: each value is encoded once, and whoever gets
    what it is encoded as must not change it.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != WRITTEN}


WRITTEN = "_written"
"""Under it a value keeps what it is encoded as; who copies its attributes must leave that out."""


def encode(value: Any) -> Any:
    """Encode a frozen value as JSON values.

    A dataclass becomes an object without the fields that have their default value, a tuple or a set a list, a mapping
    an object; a schema is kept in Arrow's own encoding. `field(metadata=written_as("class"))` gives a field another
    name where its own cannot be it.

    >>> from midstream.model.window import Window
    >>> encode(Window("range", 5))
    {'kind': 'range', 'size': 5}
    """
    return _record(type(value)).encode(value)


def decode(kind: type[T], value: Any) -> T:
    """Decode a value of this type that `encode` wrote. Fields that are missing have their default value.

    Raises `KeyError`, `TypeError`, `ValueError` or `AttributeError` for what `encode` cannot have written, and
    `CheckpointError` for an unknown kind.

    >>> from midstream.model.window import Window
    >>> decode(Window, {"kind": "range", "size": 5})
    Window(kind='range', size=5)
    """
    return cast(T, _record(kind).decode(value))


def written_as(name: str) -> dict[str, str]:
    """Return the metadata of a field that has another name when it is written."""
    return {"json": name}


class _Form(NamedTuple):
    """How the values of a type are written and read."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


class _Record:
    """The form of a dataclass; what its fields need is found out at first use, for types may contain themselves."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._tag: str | None = kind.tag if issubclass(kind, Tagged) else None
        self._complete = issubclass(kind, Complete)
        self._once = issubclass(kind, EncodedOnce)

    @cached_property
    def _fields(self) -> list[tuple[Field[Any], str, _Form | None]]:
        # A form of None means that values are JSON already.
        hints = get_type_hints(self._kind)
        return [(f, f.metadata.get("json", f.name), _form(hints[f.name])) for f in fields(self._kind)]

    @cached_property
    def _writers(self) -> list[tuple[str, Callable[[Any], Any] | None, Any]]:
        # A value equal to the third need not be written.
        full = self._complete or (self._tag and not self._kind._brief)
        return [(name, form and form.encode, MISSING if full else _default(f)) for f, name, form in self._fields]

    @cached_property
    def _readers(self) -> list[tuple[str, str, Callable[[Any], Any]]]:
        # Fields that are taken over as they are need no reader.
        found = [(name, f.name, form) for f, name, form in self._fields]
        return [(name, own, form.decode if form else _itself) for name, own, form in found if form or name != own]

    @cached_property
    def _values(self) -> Callable[[Any], tuple[Any, ...]]:
        names = [f.name for f in fields(self._kind)]
        if len(names) > 1:
            return cast(Callable[[Any], tuple[Any, ...]], attrgetter(*names))
        return lambda value: tuple(getattr(value, name) for name in names)

    def encode(self, value: Any) -> dict[str, Any]:
        if type(value) is not self._kind:
            return _record(type(value)).encode(value)
        if not self._once:
            return self._written(value)
        known: dict[str, Any] | None = value.__dict__.get(WRITTEN)
        if known is None:
            known = value.__dict__[WRITTEN] = self._written(value)
        return known

    def _written(self, value: Any) -> dict[str, Any]:
        written: dict[str, Any] = {self._tag: value.kind} if self._tag else {}
        for (name, write, default), item in zip(self._writers, self._values(value), strict=True):
            if item is not default and item != default:
                written[name] = item if write is None else write(item)
        return written

    def decode(self, value: Any) -> Any:
        if self._tag is None:
            return self._made(value)
        name = value.get(self._tag, "")
        if name not in self._kind.kinds and self._kind._group:
            load_modules(self._kind._group)
        kind = self._kind.kinds.get(name)
        if kind is None:
            raise CheckpointError(
                f"unknown {self._tag} {value.get(self._tag)!r}",
                place=f"{self._tag} log",
                remedy=f"use one of: {', '.join(sorted(self._kind.kinds))}",
            )
        return _record(kind)._made({name: item for name, item in value.items() if name != self._tag})

    def _made(self, value: Mapping[str, Any]) -> Any:
        if self._complete and len(value) < len(self._fields):
            raise KeyError(*sorted({name for _, name, _ in self._fields} - value.keys()))
        given = dict(value)
        for written, name, read in self._readers:
            if written in given:
                given[name] = read(given.pop(written))
        return self._kind(**given)  # TypeError: there is no such field, or one is missing.


def _record(kind: Any) -> _Record:
    # Kept with the class, whose subclasses have their own.
    made: _Record | None = kind.__dict__.get(_RECORD)
    if made is None:
        if not is_dataclass(kind):
            raise TypeError(f"{kind!r} is not a dataclass")
        made = _Record(kind)
        setattr(kind, _RECORD, made)
    return made


_RECORD = "_midstream_record"


def _itself(value: Any) -> Any:
    return value


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _form(hint: Any) -> _Form | None:
    # None where values are JSON as they are.
    if hint in (Any, object, str, int, float, bool, types.NoneType) or get_origin(hint) is Literal:
        return None
    if hint is pa.Schema:
        return _Form(_schema_text, _schema_of)
    if hint is pa.DataType:
        return _Form(type_text, type_of)
    if isinstance(hint, type) and issubclass(hint, Text):
        return _Form(str, hint.parse)
    if isinstance(hint, type) and issubclass(hint, OwnForm):
        return _Form(hint.to_json, hint.from_json)
    if isinstance(hint, type) and is_dataclass(hint):
        return _Form(_record(hint).encode, _record(hint).decode)
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_make"):
        return _Form(list, hint._make)  # A named tuple, of JSON values.
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _either(arguments)
    if origin is tuple and (len(arguments) != 2 or arguments[1] is not Ellipsis):
        return _fixed([_form(argument) for argument in arguments])
    if origin is tuple:
        return _many(tuple, list, _form(arguments[0]))
    if origin is frozenset:
        return _many(frozenset, sorted, _form(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_form(arguments[0]), _form(arguments[1]))
    raise TypeError(f"{hint!r} cannot be written as JSON")


def _either(hints: tuple[Any, ...]) -> _Form | None:
    forms = [form for hint in hints if (form := _form(hint)) is not None]
    if not forms:
        return None
    if len(forms) > 1 or set(hints) & {Any, str, int, float, bool}:
        raise TypeError(f"JSON does not distinguish the types {hints!r}")
    (write, read), *_ = forms
    return _Form(lambda v: None if v is None else write(v), lambda v: None if v is None else read(v))


def _many(kind: Callable[[Any], Any], listed: Callable[[Any], list[Any]], item: _Form | None) -> _Form:
    if item is None:
        return _Form(listed, kind)
    write, read = item
    return _Form(lambda many: listed([write(one) for one in many]), lambda many: kind([read(one) for one in many]))


def _fixed(items: list[_Form | None]) -> _Form:
    if not any(items):
        return _Form(list, tuple)

    def each(forms: list[Callable[[Any], Any] | None], many: Any) -> list[Any]:
        return [one if form is None else form(one) for form, one in zip(forms, many, strict=True)]

    writers, readers = [form and form.encode for form in items], [form and form.decode for form in items]
    return _Form(lambda many: each(writers, many), lambda many: tuple(each(readers, many)))


def _mapping(key: _Form | None, item: _Form | None) -> _Form:
    if key is None and item is None:
        return _Form(dict, dict)
    write_key, read_key = key or (str, str)
    if item is None:
        return _Form(
            lambda many: {write_key(k): v for k, v in many.items()},
            lambda many: {read_key(k): v for k, v in many.items()},
        )
    write, read = item
    if key is None:
        return _Form(
            lambda many: {k: write(v) for k, v in many.items()},
            lambda many: {k: read(v) for k, v in many.items()},
        )
    return _Form(
        lambda many: {write_key(k): write(v) for k, v in many.items()},
        lambda many: {read_key(k): read(v) for k, v in many.items()},
    )


def _schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode()


def _schema_of(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


_UNITS = ("s", "ms", "us", "ns")
_TYPES: dict[str, pa.DataType] = {
    str(one): one
    for one in (
        *(pa.null(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
        *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.timestamp(unit, zone) for unit in _UNITS for zone in (None, "UTC")),
        *(pa.duration(unit) for unit in _UNITS),
        *(pa.decimal128(precision, scale) for precision in range(1, 39) for scale in range(precision + 1)),
    )
}
"""The types whose names identify them; all others are written in Arrow's own encoding."""


def type_text(kind: pa.DataType) -> str:
    """Format an Arrow type as a text.

    >>> type_text(pa.decimal128(10, 2)), type_of("timestamp[us, tz=UTC]")
    ('decimal128(10, 2)', TimestampType(timestamp[us, tz=UTC]))
    """
    text = str(kind)
    return text if _TYPES.get(text) == kind else _schema_text(pa.schema([pa.field("", kind)]))


def type_of(text: str) -> pa.DataType:
    """Parse the Arrow type that `type_text` wrote."""
    found = _TYPES.get(text)
    return _schema_of(text).field(0).type if found is None else found
