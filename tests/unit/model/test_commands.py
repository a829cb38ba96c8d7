import json
from typing import Any

import pyarrow as pa
import pytest

from midstream.commands.add_query import AddQuery
from midstream.commands.add_stream import AddStream
from midstream.commands.answer_proposal import Approve, Reject
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.drop_stream import DropStream
from midstream.commands.drop_table import DropTable
from midstream.commands.migrate import Migrate
from midstream.commands.optimize import Optimize
from midstream.commands.pin import Pin, Unpin
from midstream.commands.rescale import Rescale
from midstream.commands.reshare import Reshare
from midstream.commands.set_table import SetTable
from midstream.commands.spread import Spread
from midstream.commands.stop import Stop
from midstream.model.codec import decode, encode
from midstream.model.command import Command
from midstream.model.errors import CheckpointError
from midstream.model.manifest import ChunkRef
from midstream.model.optimization import OptimizerSettings
from midstream.model.schema import StreamSchema

COLUMNS = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
COMMANDS: tuple[Command, ...] = (
    Migrate("q", "(A (B C))", "jisc", {"rate": 0.5}, "shop.operators:Median", {"every": 5}, together=True),
    AddQuery("q", "SELECT 1", "(A B)", {"format": "json"}, "shop.operators:Median", history=False),
    ChangeQuery("q", "SELECT 'naïve 漢字'"),
    DropQuery("q"),
    Rescale(16),
    Reshare("cpu_opt"),
    Optimize("q", OptimizerSettings(mode="ask", weights={"work": 0.5}, allow=("jisc",), quiet=((0, 5),))),
    Approve("q", "(A (B C))"),
    Reject("q"),
    Approve(lanes=4),
    Reject(lanes=4),
    Pin("q", "(A (B C))"),
    Unpin("q"),
    Stop(3),
    AddStream(StreamSchema("A", COLUMNS, "ts", 5)),
    DropStream("A"),
    DropTable("rates"),
    SetTable("rates", COLUMNS, ChunkRef("tables/rates/00000003-x", 1, 8, 7), "0123"),
    Spread("q", "ctr", 4, {"copies": 3}, "[A: B C | B: A C | C: A B]"),
)


def test_every_kind_is_here() -> None:
    assert {type(command) for command in COMMANDS} == set(Command.kinds.values())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.kind)
def test_json_round_trip(command: Command) -> None:
    assert decode(Command, json.loads(json.dumps(encode(command)))) == command


def test_logs_of_before_sharing_are_still_read() -> None:
    add = {"command": "add_query", "query": "q", "sql": "SELECT 1", "plan": None, "sink": None, "operator": None}
    move: dict[str, Any] = {
        "command": "migrate",
        "query": "q",
        "plan": "A",
        "strategy": "gms",
        "options": {},
        "operator": None,
    }
    assert decode(Command, add) == AddQuery("q", "SELECT 1", history=True)
    assert decode(Command, move) == Migrate("q", "A", "gms", together=False)


def test_an_unknown_kind() -> None:
    with pytest.raises(CheckpointError, match=r"unknown command 'explode'.*change_query.*reshare"):
        decode(Command, {"command": "explode"})
