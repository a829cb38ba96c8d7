"""JOIN ... USING (k) and NATURAL JOIN, written as JOIN ... ON.

The columns of equal name become one: of an inner or LEFT JOIN the left one, of a RIGHT JOIN the right one, of a FULL
JOIN the one that is not NULL. Where they stand without a source, or `*` stands for them, that stands in
their place.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from midstream.model.schema import StreamSchema, TableSchema
from midstream.sql.dialect import CqlText
from midstream.sql.error_at import error_at
from midstream.sql.scope import find_name
from midstream.sql.subqueries import common_tables, names_shown


def with_joins_on(found: CqlText, tree: exp.Select, streams: Mapping[str, StreamSchema | TableSchema]) -> exp.Select:
    """Return the query with ON for USING and NATURAL; raises LanguageError for a column that one side lacks."""
    joins = tree.args.get("joins") or []
    if not any(join.args.get("using") or _is_natural(join) for join in joins):
        return tree
    written = tree.copy()
    joined = _Joined(found, written, streams)
    for join in written.args["joins"]:
        joined.add(join)
    for key, part in written.args.items():
        if key in ("from_", "joins", "with_", "expressions", "window", "every", "subtrahends") or not part:
            continue
        nodes = part if isinstance(part, list) else [part]
        changed = [node.transform(joined.shown) for node in nodes]
        written.set(key, changed if isinstance(part, list) else changed[0])
    written.set("expressions", [one for item in written.expressions for one in joined.items(item)])
    return written


def _is_natural(join: exp.Expr) -> bool:
    return str(join.args.get("method") or "").upper() == "NATURAL"


class _Joined:
    """The sources of FROM up to a join, and the columns that are one, by name in small letters."""

    def __init__(self, found: CqlText, tree: exp.Select, streams: Mapping[str, StreamSchema | TableSchema]) -> None:
        self.found, self.streams, self.common = found, streams, common_tables(found.text, tree)
        self.merged: dict[str, tuple[str, exp.Expr]] = {}
        self.sources: dict[str, tuple[str, ...]] = {}
        self._source(tree.args["from_"].this)

    def _source(self, item: exp.Expr) -> None:
        self.sources[item.alias_or_name] = names_shown(item, self.common, self.streams, starred_only=True)

    def add(self, join: exp.Expr) -> None:
        """Write the condition of the next join, and note the columns that it makes one."""
        before, item = {**self.sources}, join.this
        if (on := join.args.get("on")) is not None:
            join.set("on", on.transform(self.shown))
        self._source(item)
        names = list(join.args.get("using") or [])
        if _is_natural(join):
            names = self._common_names(join, before)
            join.set("method", None)
        conditions = [self._condition(name, join, before) for name in names]
        if conditions:
            join.set("using", None)
            join.set("on", exp.and_(*conditions, copy=False))
        if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            del self.sources[item.alias_or_name]

    def _common_names(self, join: exp.Expr, before: Mapping[str, tuple[str, ...]]) -> list[exp.Expr]:
        own = self.sources[join.this.alias_or_name]
        known = [name for names in before.values() for name in names]
        found: list[exp.Expr] = [exp.to_identifier(name, quoted=True) for name in own if find_name(name, known)]
        if not found:
            remedy = "write JOIN ... ON; or CROSS JOIN, if each row is to meet all others"
            raise error_at(
                self.found.text,
                join.this,
                "NATURAL JOIN of sources that have no column in common is not possible",
                remedy,
            )
        return found

    def _condition(self, name: exp.Expr, join: exp.Expr, before: Mapping[str, tuple[str, ...]]) -> exp.Expr:
        alias, key = join.this.alias_or_name, name.name.lower()
        first = next((one for one, names in before.items() if find_name(name.name, names)), None)
        own = find_name(name.name, self.sources[alias])
        if first is None or not own:
            where = alias if first is not None else "the sources before"
            message = f"USING names column {name.name!r}, which {where} lacks"
            raise error_at(self.found.text, name, message, "write ON")
        given = find_name(name.name, before[first])[0]
        title, left = self.merged.get(key) or (given, _column(name, given, first))
        right = _column(name, own[0], alias)
        side, kind = (str(join.args.get(one) or "").upper() for one in ("side", "kind"))
        if kind in ("SEMI", "ANTI"):
            both = left
        else:
            both = {"RIGHT": right, "FULL": exp.Coalesce(this=left.copy(), expressions=[right.copy()])}.get(side, left)
        self.merged[key] = title, both
        return exp.EQ(this=left.copy(), expression=right.copy())

    def shown(self, node: exp.Expr) -> exp.Expr:
        """Return what a column without a source stands for; any other node as it is."""
        bare = isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)
        one = self.merged.get(node.name.lower()) if bare else None
        return node if one is None else one[1].copy()

    def items(self, item: exp.Expr) -> list[exp.Expr]:
        """Return what an item of the select list stands for."""
        if isinstance(item, exp.Star) and not any(item.args.values()):
            return self._all()
        written = item.transform(self.shown)
        if written is not item and isinstance(item, exp.Column) and written != item:
            return [exp.alias_(written, self.merged[item.name.lower()][0], quoted=True)]
        return [written]

    def _all(self) -> list[exp.Expr]:
        found, given = list[exp.Expr](), set[str]()
        for alias, names in self.sources.items():
            for name in names:
                if (one := self.merged.get(name.lower())) is None:
                    found.append(exp.column(name, alias, quoted=True))
                elif name.lower() not in given:
                    given.add(name.lower())
                    found.append(exp.alias_(one[1].copy(), one[0], quoted=True))
        return found


def _column(name: exp.Expr, spelled: str, alias: str) -> exp.Expr:
    """Return a column that stands where its name does in USING."""
    identifier = name.copy()
    identifier.set("this", spelled)
    identifier.set("quoted", True)
    return exp.column(identifier, exp.to_identifier(alias, quoted=True))
