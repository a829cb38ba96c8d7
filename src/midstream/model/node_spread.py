"""How a query is spread over nodes, as a manifest keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import add

AUTO_NODES = "auto"
"""Said in place of a number of nodes: as many as the cost model finds best."""

OFF = "off"
"""No spread over nodes: in lanes, as a query runs that names none."""


@dataclass(frozen=True)
class SourceSlices:
    """The slices of a source whose rows stay where they came: where each begins in event time, and its node.

    From the tail to the head; `rows` are those in the head so far, `newest` is the greatest event time that has come.
    """

    starts: tuple[int, ...]
    nodes: tuple[int, ...]
    rows: int = 0
    newest: int = 0


@dataclass(frozen=True)
class SourceRows:
    """The rows of a source that came in the last window, and the mean number in a window.

    `rows` are those of equal parts of event time, of which `begin` is the number of the first. The mean is over `known`
    microseconds.
    """

    begin: int = 0
    rows: tuple[int, ...] = ()
    mean: float = 0.0
    known: int = 0


@dataclass(frozen=True)
class NodeWork:
    """What a node holds, and what it did since the spread began: pairs compared, partial results that visited it."""

    rows: int = 0
    comparisons: int = 0
    visits: int = 0


@dataclass(frozen=True)
class RouteWork:
    """The work for new rows of a source along their probing order since the spread began.

    `rows` of them came. By source in `order`, `comparisons` and `matches` are those of the partial results that visited
    it, and `partials`, without the first source, counts these. If no node has an order of its own, they are the matches
    of the hop before.
    """

    order: tuple[str, ...] = ()
    rows: int = 0
    comparisons: tuple[int, ...] = ()
    matches: tuple[int, ...] = ()
    partials: tuple[int, ...] = ()

    def __add__(self, other: RouteWork) -> RouteWork:
        """Add up two counts of one order; of another order the latter counts alone.

        >>> RouteWork(("B",), 2, (5,), (1,)) + RouteWork(("B",), 1, (4,), (0,))
        RouteWork(order=('B',), rows=3, comparisons=(9,), matches=(1,), partials=())
        """
        if self.order != other.order:
            return other
        return RouteWork(
            self.order,
            self.rows + other.rows,
            tuple(map(add, self.comparisons, other.comparisons)),
            tuple(map(add, self.matches, other.matches)),
            tuple(map(add, self.partials, other.partials)),
        )


@dataclass(frozen=True)
class NodeSpread:
    """A query spread over so many `nodes` by a `scheme`, since a step.

    With `auto` the number of nodes was left to the cost model, for the sake of `objective`. `count_bound` is how many
    rows a slice takes at most, 0 for any number; with "auto" it follows from `came`, which counts the rows of each
    label. `master` (an alias), `segment` (microseconds) and `copies` are those of the schemes that replicate. `slices`
    are by label those of a scheme whose rows stay where they came, whose nodes have `pieces` of them each. `cuts` are,
    where slices by age were cut again by load, the parts of the work of an even cut at which they end. `weighed` is
    what each node had compared when that was looked at last. `rings` are by label the nodes of the ring from the head
    on, where they do not follow one another by number, or where it has fewer than all (Wang §13.3). `moment` is the
    newest event time that a step has seen, `span` by how much it went on with each moment in flight of the last step.
    `work` is what each node did, `sent` has for each hop the visits of partial results to nodes and `bytes` the size of
    their values, `routes` has by label what new rows did along their probing order, `moved` counts rows that were
    listed at another node. `orders` are by label the probing orders of each node, where some have one of their own
    (Wang §12.2). `found` has by label what the partial results of each node did after their first hop, since the node's
    order was looked at. `began` is the first step that had nodes, where the query ran in lanes before.

    Where nodes came or went passively, rows from the event time `begins` on lie so, and older ones as `before` says,
    until they have run out.

    Queries that share the nodes have the same record; `regrouped` is the step since which it is these. What was kept
    before the nodes were shared is `alone`'s, the one query that had them for itself.
    """

    scheme: str
    nodes: int
    since: int
    auto: bool = False
    objective: str = "latency"
    master: str = ""
    segment: int = 0
    copies: int = 2
    count_bound: int | str = 0
    moment: int | None = None
    span: int = 0
    slices: Mapping[str, SourceSlices] = field(default_factory=dict)
    came: Mapping[str, SourceRows] = field(default_factory=dict)
    rings: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    cuts: tuple[float, ...] = ()
    pieces: int = 1
    weighed: tuple[int, ...] = ()
    work: tuple[NodeWork, ...] = ()
    sent: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()
    routes: Mapping[str, RouteWork] = field(default_factory=dict)
    moved: int = 0
    orders: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    found: Mapping[str, tuple[RouteWork, ...]] = field(default_factory=dict)
    began: int | None = None
    begins: int = 0
    before: NodeSpread | None = None
    regrouped: int | None = None
    alone: str = ""

    def ring(self, label: str) -> tuple[int, ...]:
        """Return the nodes of a source's ring, from the head on."""
        return self.rings.get(label) or tuple(range(self.nodes))

    @property
    def all(self) -> tuple[NodeSpread, ...]:
        """This spread, and those before it whose rows have not run out."""
        return (self, *(() if self.before is None else self.before.all))

    @property
    def reach(self) -> int:
        """The number of nodes that may have rows, including those that leave as their rows run out.

        >>> NodeSpread("psp", 2, 7, begins=90, before=NodeSpread("psp", 3, 0)).reach
        3
        """
        return max(one.nodes for one in self.all)

    @property
    def balance(self) -> float | None:
        """The comparisons of the busiest node against those of the mean one; None where nothing was compared.

        >>> NodeSpread("psp", 2, 0, work=(NodeWork(comparisons=30), NodeWork(comparisons=10))).balance
        1.5
        """
        compared = [one.comparisons for one in self.work]
        return max(compared) * len(compared) / sum(compared) if sum(compared) else None
