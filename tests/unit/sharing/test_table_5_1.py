"""Wang Table 5.1: two one-way slices tuple by tuple, and the engine's chain over the same arrivals.

The table, like Fig. 5.2 and like the windows here, lets a row of age exactly W_end count (a_2 with b_1 in the first
slice, a_1 with b_2 in the second); Definition 1 and the text beside the table do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from midstream.embedded import Engine
from midstream.model.manifest import StateListing

SECOND = 1_000_000
W_1, W_2 = 2, 4
BORN = {"a1": 1, "a2": 2, "a3": 3, "b1": 4, "b2": 5, "a4": 8}

Pair = tuple[str, str]
Row = tuple[list[str], list[str], list[str], set[Pair]]

TABLE: dict[int, Row] = {
    1: (["a1"], [], [], set()),
    2: (["a2", "a1"], [], [], set()),
    3: (["a3", "a2", "a1"], [], [], set()),
    4: (["a3", "a2"], ["b1", "a1"], [], {("a2", "b1"), ("a3", "b1")}),
    5: (["a3"], ["b2", "a2", "b1", "a1"], [], {("a3", "b2")}),
    6: (["a3"], ["b2", "a2", "b1"], ["a1"], set()),
    7: (["a3"], ["b2", "a2"], ["a1"], {("a1", "b1")}),
    8: (["a4", "a3"], ["b2", "a2"], ["a1"], set()),
    9: (["a4"], ["a3", "b2"], ["a2", "a1"], set()),
    10: (["a4"], ["a3"], ["a2", "a1"], {("a1", "b2"), ("a2", "b2")}),
}
"""As printed, by second: the first slice, the queue (its head last), the second slice, the output."""

SLIP = ["a3"]
"""From T=9 on it is printed in the queue, though no b has come that would have purged it."""


@dataclass
class OneWayJoin:
    """A[W_start, W_end] with B, as Fig. 5.2 executes it; the slice's beginning is its queue's business."""

    end: int
    state: list[str] = field(default_factory=list)

    def take(self, row: str, onwards: deque[str] | None) -> set[Pair]:
        if row.startswith("a"):
            self.state.insert(0, row)
            return set()
        expired = [a for a in self.state if BORN[row] - BORN[a] > self.end]
        self.state = [a for a in self.state if a not in expired]
        if onwards is not None:
            onwards.extend([*reversed(expired), row])
        return {(a, row) for a in self.state}


def executed() -> Iterator[tuple[int, Row]]:
    """The chain under the table's schedule: a tuple is taken each second, J_2 runs at 6, 7, 9 and 10."""
    one, two, queue = OneWayJoin(W_1), OneWayJoin(W_2), deque[str]()
    arrivals = {second: row for row, second in BORN.items()}
    for second in TABLE:
        found = one.take(arrivals[second], queue) if second in arrivals else two.take(queue.popleft(), None)
        yield second, (list(one.state), list(reversed(queue)), list(two.state), found)


@pytest.mark.parametrize(("second", "found"), list(executed()), ids=[f"T={second}" for second in TABLE])
def test_the_chain_executes_as_printed_but_for_a_slip(second: int, found: Row) -> None:
    first, queue, rest, output = found
    if second >= 9:
        assert first[-1:] == SLIP
        first, queue = first[:-1], SLIP + queue
    assert (first, queue, rest, output) == TABLE[second]


def engine() -> Engine:
    made = Engine(sharing="mem_opt")
    for stream in "AB":
        schema = pa.schema([("name", pa.string()), ("ts", pa.timestamp("us"))])
        made.create_stream(stream, schema, timestamp="ts")
    for window in (W_1, W_2):
        size = f"RANGE {window} SECONDS"
        # Every pair matches.
        sql = f"SELECT A.name AS a, B.name AS b FROM A [{size}], B [{size}] WHERE A.name <> B.name"
        made.add_query(f"q{window}", sql)
    return made


def one(row: str, second: int) -> pa.Table:
    return pa.table({"name": [row], "ts": pa.array([second * SECOND], pa.timestamp("us"))})


def arrive(chain: Engine, row: str) -> dict[int, set[Pair]]:
    """What the queries get of a row that arrives; of these pairs a one-way join finds those whose later row is b.

    The listing is of the moment that was known when a step began: an empty step brings it up to date.
    """
    got = chain.push({row[0].upper(): one(row, BORN[row])})
    chain.push({})
    return {
        window: {(p["a"], p["b"]) for p in got[f"q{window}"].to_pylist() if BORN[p["b"]] > BORN[p["a"]]}
        for window in (W_1, W_2)
    }


def state_of_a(chain: Engine) -> StateListing:
    (lane,) = chain.manifest.lane_states.values()
    (listing,) = [s for id, s in lane.states.items() if id.startswith("A.") and not id.endswith(".rows")]
    return listing


def slices(chain: Engine) -> list[set[str]]:
    """The rows of A in each slice of the engine."""
    found: list[set[str]] = [set(), set()]
    for chunk in state_of_a(chain).chunks:
        assert chunk.born is not None
        inside = {a for a in BORN if a[0] == "a" and chunk.born[0] <= BORN[a] * SECOND <= chunk.born[1]}
        assert len(inside) == chunk.rows
        found[chunk.slice] |= inside
    return found


def test_the_engine_finds_the_output_of_the_chain_at_once() -> None:
    """Q_1 reads the first slice, Q_2 both: each b meets all that the slices would let it meet, whenever they ran."""
    chain = engine()
    got = {row: arrive(chain, row) for row in BORN}
    by_first = {row: TABLE[BORN[row]][3] for row in ("b1", "b2")}
    everything = set[Pair]().union(*(output for *_, output in TABLE.values()))
    for row in BORN:
        assert got[row][W_1] == by_first.get(row, set())
        assert got[row][W_2] == {pair for pair in everything if pair[1] == row}


def test_the_engine_holds_the_states_of_the_chain() -> None:
    """Where both have seen as much: before any b, and with a_4, when A is known to be past b_2, too.

    Wang's slices of A are purged by rows of B as they come, the engine's by the time that both streams have reached.
    """
    chain = engine()
    held = {row: (arrive(chain, row), slices(chain))[1] for row in BORN}
    for row in ("a1", "a2", "a3"):
        assert held[row] == [set(TABLE[BORN[row]][0]), set()]
    # b_2 has been through both slices; a_4 purges no row of its own stream, so a_3 is where it was at T=8.
    assert held["a4"] == [set(TABLE[8][0]), set(TABLE[10][2])] == [{"a3", "a4"}, {"a1", "a2"}]


def test_a_chunk_is_listed_where_its_youngest_row_would_be() -> None:
    """What is stored together moves together: at other moments a row may wait for a younger one, but never leads."""
    chain, heard = engine(), {"a": 0, "b": 0}
    for row in BORN:
        arrive(chain, row)
        heard[row[0]] = BORN[row]
        assert slices(chain)[0] | slices(chain)[1] == {a for a in BORN if a[0] == "a" and BORN[a] <= BORN[row]}
        for chunk in state_of_a(chain).chunks:
            assert chunk.born is not None
            assert chunk.slice == int(min(heard.values()) - chunk.born[1] // SECOND > W_1)


@pytest.mark.parametrize(("second", "at"), [(5, 0), (6, 1)])
def test_a_row_is_in_the_first_slice_up_to_its_very_end(second: int, at: int) -> None:
    """a_3 with b_2, as at T=5; Definition 1 would have it in the second slice."""
    chain = engine()
    chain.push({"A": one("a3", 3)})
    chain.push({stream: one(stream.lower(), second) for stream in "AB"})
    chain.push({})
    slices_of = {chunk.born: chunk.slice for chunk in state_of_a(chain).chunks}
    assert slices_of == {(3 * SECOND, 3 * SECOND): at, (second * SECOND, second * SECOND): 0}
