"""Which columns of a file are meant by names: case does not count, as it does not for Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt


class AlikeColumns(ValueError):
    """A file has columns with the same name, or with names that differ only by case, so a name is ambiguous."""

    def __init__(self, names: Sequence[str]) -> None:
        if twice := next((name for name in names if names.count(name) > 1), None):
            super().__init__(f"it has two columns {twice!r}")
        else:
            super().__init__(f"its columns {' and '.join(map(repr, names))} differ only by case")


def own_names(declared: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Map declared names to a file's columns, which may differ by case; names that the file lacks are left out.

    One that is called just so is the one that is meant. Raises `AlikeColumns` where two are called so, or there is
    none, and two could be meant.

    >>> own_names(["k", "v"], ["ts", "K"]), own_names(["k"], ["K", "k"])
    ({'k': 'K'}, {'k': 'k'})
    """
    own, found = _by_lower_case(given), dict[str, str]()
    for lower, names in _by_lower_case(declared).items():
        alike = own.get(lower, [])
        if len(names) > 1 or names[0] in alike:  # Checkpoints may have both, of files that have.
            found |= {name: name for name in names if name in alike}
            if twice := [name for name in found if alike.count(name) > 1]:
                raise AlikeColumns(twice * 2)
        elif len(alike) > 1:
            raise AlikeColumns(alike)
        elif alike:
            found[names[0]] = alike[0]
    return {name: found[name] for name in declared if name in found}


def refuse_alike(names: Sequence[str]) -> None:
    """Raise `AlikeColumns` where two undeclared columns of a file differ only by case."""
    for alike in _by_lower_case(names).values():
        if len(alike) > 1:
            raise AlikeColumns(alike)


def _by_lower_case(names: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.lower(), []).append(name)
    return found


def spelled(given: pa.DataType, declared: pa.DataType) -> pa.DataType:
    """Rename the struct fields of a file column's type as the declared type spells them.

    >>> spelled(pa.list_(pa.struct([("A", pa.int32())])), pa.list_(pa.struct([("a", pa.int64())])))
    ListType(list<item: struct<a: int32>>)
    """
    if pt.is_struct(given) and pt.is_struct(declared):
        own = own_names([field.name for field in declared], [field.name for field in given])
        names = {found: name for name, found in own.items()}
        kinds = {found: declared.field(name).type for name, found in own.items()}
        return pa.struct(
            [
                field.with_name(names[field.name]).with_type(spelled(field.type, kinds[field.name]))
                if field.name in names
                else field
                for field in given
            ]
        )
    if pt.is_map(given) and pt.is_map(declared):
        item = given.item_field.with_type(spelled(given.item_type, declared.item_type))
        return pa.map_(spelled(given.key_type, declared.key_type), item, given.keys_sorted)
    if _is_list(given) and _is_list(declared):
        field = given.value_field.with_type(spelled(given.value_type, declared.value_type))
        return pa.list_(field) if pt.is_list(given) else pa.large_list(field)
    return given


def respelled(values: pa.Array, declared: pa.DataType) -> pa.Array:
    """Rename the struct fields of nested values as they are declared, because Arrow casts by name.

    Raises `AlikeColumns` where two fields could be meant.

    >>> given = pa.array([{"IP": "a"}, None])
    >>> respelled(given, pa.struct([("ip", pa.string())])).to_pylist()
    [{'ip': 'a'}, None]
    """
    kind = spelled(values.type, declared) if pt.is_nested(values.type) else values.type
    if kind == values.type:
        return values
    values, kind = values.cast(decoded(values.type)), decoded(kind)
    batch = pa.record_batch([values], [""]).serialize()
    return pa.ipc.read_record_batch(batch, pa.schema([("", kind)])).column(0)


def decoded(kind: pa.DataType) -> pa.DataType:
    """Replace dictionaries within a nested type by their value types.

    >>> decoded(pa.struct([("a", pa.dictionary(pa.int32(), pa.string()))]))
    StructType(struct<a: string>)
    """
    if pt.is_dictionary(kind):
        return kind.value_type
    if pt.is_struct(kind):
        return pa.struct([field.with_type(decoded(field.type)) for field in kind])
    if pt.is_map(kind):
        return pa.map_(decoded(kind.key_type), kind.item_field.with_type(decoded(kind.item_type)), kind.keys_sorted)
    if _is_list(kind):
        field = kind.value_field.with_type(decoded(kind.value_type))
        return pa.list_(field) if pt.is_list(kind) else pa.large_list(field)
    return kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind))
