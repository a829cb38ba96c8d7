"""ISTREAM, DSTREAM and RSTREAM of CQL: which stream a query makes of the relation that its windows hold.

At an instant t the relation has the results whose rows are all in their windows then. ISTREAM gives each when it
enters, which is what a query answers anyway; DSTREAM when it has left; RSTREAM all of them EVERY so often.

Source: Arasu, Babu and Widom, "The CQL continuous query language" (2006), section 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from midstream.logical.query import Aggregate, Source
from midstream.model.errors import LanguageError
from midstream.sql.dialect import CqlText
from midstream.sql.from_clause import NO_WINDOW
from midstream.sql.place import place

_GROUPING = ("group", "having", "qualify", "distinct")


def relation_of(found: CqlText, tree: exp.Select) -> str:
    """Return the operator that a query asks for; empty for none, and where its answers are what it asks for anyway.

    Raises LanguageError where the operator means nothing over the query.
    """
    if found.relation is None:
        return ""
    kind, _ = found.relation
    word = kind.upper()
    if found.subtrahends:
        remedy = "leave it out; a query around this one selects by _op: '+' is what enters, '-' what leaves"
        raise _refused(
            found, f"{word} cannot be over EXCEPT, which already lists the rows that enter and leave", remedy
        )
    joins = tree.args.get("joins") or []
    if any(str(join.args.get(key) or "").upper() not in ("", "INNER", "CROSS") for join in joins for key in _KINDS):
        why = "only the end of a window shows that a row has no match"
        raise _refused(
            found,
            f"{word} cannot be over an outer, semi or anti join, because {why}",
            f"use an inner join, or leave {word} out",
        )
    grouped = any(tree.args.get(key) for key in _GROUPING) or bool(found.windowed)
    grouped |= any(item.find(exp.AggFunc, exp.Window) is not None for item in tree.expressions)
    if kind == "rstream" and found.every is None:
        remedy = "say at which instants to give the whole relation: EVERY 10 SECONDS at the end of the query"
        raise _refused(found, "RSTREAM needs EVERY, because RSTREAM would otherwise answer at each microsecond", remedy)
    if kind != "rstream" and grouped:
        why = "its answers are whole groups, at instants or at the ends of windows"
        raise _refused(
            found, f"{word} cannot be over an aggregate, because {why}", f"leave {word} out, or write RSTREAM and EVERY"
        )
    if kind != "rstream" and found.every is not None:
        remedy = "leave EVERY out, or write RSTREAM: the whole relation at each of these instants"
        raise _refused(found, f"{word} cannot have EVERY, because {word} answers at each change", remedy)
    return "" if kind == "istream" or grouped else kind


def related(found: CqlText, kind: str) -> Aggregate:
    """Return what stands on top of a join whose results leave, or are all given at instants."""
    return Aggregate((), (), 0 if found.every is None else found.every[0], relation=kind)


def check_relation(found: CqlText, sources: Sequence[Source], in_parts: bool) -> None:
    """Raise LanguageError where a query with a relation operator has a stream without a window, or runs in parts."""
    if found.relation is None:
        return
    word = found.relation[0].upper()
    bare = next((source for source in sources if source.window is None), None)
    if bare is not None:
        what = f"{word} needs a window on each stream, and {bare.alias!r} has none"
        raise _refused(
            found, what, f"leave {word} out, because rows never leave a stream without a window; or {NO_WINDOW}"
        )
    if in_parts and word != "ISTREAM":
        remedy = "give all streams one window by WINDOW n unit at the end, or leave it out"
        raise _refused(
            found,
            f"{word} cannot be over joins of different windows, because no window keeps the joins' results",
            remedy,
        )


_KINDS = ("method", "side", "kind")


def _refused(found: CqlText, message: str, remedy: str) -> LanguageError:
    assert found.relation is not None
    return LanguageError(message, place=place(found.text, found.relation[1]), remedy=remedy)
