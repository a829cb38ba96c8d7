"""Parts of nested values, as `info.ip`, `tags[1]` and `attrs['k']` name them: typing rules and functions."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as is_
from sqlglot import exp

from midstream.expr.coerce import cast, literal, plain
from midstream.expr.expression import Call, Expression, Literal
from midstream.expr.function import Function, fixed
from midstream.expr.kernels import nested_parts
from midstream.expr.kernels.nested_keys import nested_key
from midstream.expr.rules import Arguments, anything, wrong
from midstream.expr.types import BOOLEAN, INT64, family
from midstream.model.words import suggest

FIELD, ITEM, ENTRY = "struct_extract", "list_extract", "map_extract_value"
"""The functions of parts, which `field_of` and `part_of` type."""


def field_of(value: Expression, name: str) -> Expression:
    """A field of a struct, by its name, or by one that is equal except for case; raises LanguageError.

    >>> import pyarrow as pa
    >>> from midstream.expr.expression import Column
    >>> field_of(Column(pa.struct({"ip": pa.string()}), "A", "info"), "IP").text()
    "struct_extract(A.info, 'ip'::string)"
    """
    if not is_.is_struct(value.type):
        raise wrong(f"a value of type {value.type} has no field {name!r}", "read a field of a STRUCT")
    names = [field.name for field in value.type]
    found = [n for n in names if n == name] or [n for n in names if n.lower() == name.lower()]
    if len(found) != 1:
        raise wrong(f"unknown field {name!r}", suggest(name, names))
    return plain(Call(value.type.field(found[0]).type, FIELD, (value, literal(found[0]))))


def part_of(value: Expression, key: Expression) -> Expression:
    """What a subscript picks: an item of a list, counted from 1, a value of a map or a field; raises LanguageError."""
    if is_.is_struct(value.type) and isinstance(key, Literal) and isinstance(key.value, str):
        return field_of(value, key.value)
    if is_.is_map(value.type):
        if "other" in (family(key.type), family(value.type.key_type)):
            raise wrong(
                f"a value of type {value.type} cannot have a key of type {key.type}",
                "use a number, string or time as the key",
            )
        return plain(Call(value.type.item_type, ENTRY, (value, cast(key, value.type.key_type))))
    if is_list(value.type):
        if family(key.type) != "integer":
            shown = repr(key.value) if isinstance(key, Literal) else f"a value of type {key.type}"
            raise wrong(
                f"the position of an item in a list must be a whole number, not {shown}",
                "write a whole number, such as 1",
            )
        if isinstance(key, Literal) and key.value == 0:
            raise wrong("a list has no item 0", "use 1 for the first item, or -1 for the last item")
        return plain(Call(value.type.value_type, ITEM, (value, cast(key, INT64))))
    raise wrong(
        f"a value of type {value.type} cannot have a subscript", "use [...] only with a list, a MAP or a STRUCT"
    )


def constant_of(node: exp.Expr) -> Literal | None:
    """The constant that a subscript is, if it is one: sqlglot has counted whole numbers down by one."""
    inner, sign = (node.this, -1) if isinstance(node, exp.Neg) else (node, 1)
    if not isinstance(inner, exp.Literal) or not (inner.is_string or _is_index(inner.name)):
        return None
    return literal(inner.name if inner.is_string else sign * int(inner.name) + 1)


def _is_index(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


def is_list(type: pa.DataType) -> bool:
    """Whether values of a type are lists."""
    return bool(is_.is_list(type) or is_.is_large_list(type) or is_.is_fixed_size_list(type))


def _counted(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    (value,) = arguments
    if not is_list(value.type) and not is_.is_map(value.type):
        raise wrong(f"the items of a value of type {value.type} cannot be counted", "give a list or a MAP")
    return INT64, arguments


def _contained(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    lists, value = arguments
    if not is_list(lists.type):
        raise wrong(f"a value of type {lists.type} is not a list", "give a list")
    item = family(lists.type.value_type)
    if "other" in (item, family(value.type)):
        remedy = "use a list of numbers, strings or times" if item == "other" else "search for a number, string or time"
        raise wrong(f"a {lists.type} cannot contain a value of type {value.type}", remedy)
    return BOOLEAN, (lists, cast(plain(value), lists.type.value_type))


NESTED: dict[str, Function] = {
    "nested_key": fixed(1, lambda arguments: (pa.binary(), arguments), nested_key),
    FIELD: fixed(2, anything, nested_parts.field),
    ITEM: fixed(2, anything, nested_parts.item),
    ENTRY: fixed(2, anything, nested_parts.entry),
    "array_length": fixed(1, _counted, nested_parts.count),
    "list_contains": fixed(2, _contained, nested_parts.contains),
}
"""The functions of nested values, by name."""
