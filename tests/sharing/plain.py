"""Members written by hand: equi-joins over one key, one window for all streams, any filters."""

from __future__ import annotations

import itertools

from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.sharing.family import Asked, Want, reads


def asked(names: str, seconds: float, *filters: str, plan: str | None = None) -> Asked:
    """A member: the streams it joins, its window, its filters; it names the rows it joins, and when.

    >>> asked("AB", 2, "A.n > 1").spec.cql()
    'SELECT A.u AS a, B.u AS b, _ts FROM A, B WHERE (A.k = B.k) AND (A.n > 1) WINDOW 2 SECONDS'
    """
    size = round(seconds * SECOND)
    ties = [f"{one}.k = {other}.k" for one, other in itertools.pairwise(names)]
    where = [Condition(text, tuple(name for name in names if f"{name}." in text)) for text in (*ties, *filters)]
    items = (*(Item(f"{name}.u", name.lower()) for name in names), Item("_ts"))
    spec = QuerySpec(tuple(SourceSpec(name, name) for name in names), items, tuple(where), window=size)
    windows = {name: ("range", size) for name in names}
    return Asked(
        spec,
        plan,
        Want(
            (tuple(names), frozenset(ties)),
            windows,
            frozenset(filters),
            plan or names,
            reads(spec, {name: name for name in names}),
        ),
    )
