"""A checkpoint or a command that anybody may have written names a server: it learns no password by that."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.commands.add_query import AddQuery
from midstream.sinks.postgresql import PostgresqlSink
from tests.embedded.test_checkpoint import SQL, opened, step

MAY_I_ENCRYPT = tuple(code.to_bytes(4, "big") for code in (80877103, 80877104))
PASSWORD_PLEASE = b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big")
"""Messages of PostgreSQL's protocol: SSLRequest and GSSENCRequest; AuthenticationCleartextPassword."""

SAID = "midstream does not send PGPASSWORD to the (host|port) "


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A server that asks whoever connects for the password in the clear: its port, and what it is told."""
    told: list[bytes] = []

    def serve(door: socket.socket) -> None:
        with suppress(OSError):
            while True:
                with door.accept()[0] as caller:
                    while caller.recv(1000)[4:8] in MAY_I_ENCRYPT:
                        caller.sendall(b"N")
                    caller.sendall(PASSWORD_PLEASE)
                    told.append(caller.recv(1000))

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=serve, args=(door,), daemon=True).start()
        yield door.getsockname()[1], told
        door.shutdown(socket.SHUT_RDWR)


def test_the_password_of_the_environment_goes_to_no_server_that_this_does_not_name(
    listener: tuple[int, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, told = listener
    monkeypatch.setenv("PGPASSWORD", "secret")
    dsn = f"host=127.0.0.1 port={port} user=etl dbname=sales"
    for environment in ({}, {"PGHOST": "db", "PGPORT": str(port)}, {"PGHOST": "127.0.0.1"}):
        for name in ("PGHOST", "PGPORT"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        for url in (dsn, f"postgresql://etl@127.0.0.1:{port}/sales", f"host=db,127.0.0.1 port=5432,{port}"):
            with pytest.raises(ms.SinkError, match=rf"{SAID}.*Remedy: .*~/.pgpass"):
                PostgresqlSink("t", url).open()
    place = tmp_path / "checkpoint"
    hostile = {"type": "postgresql", "table": "t", "dsn": dsn}
    with opened(tmp_path) as engine:
        engine.push(step(0))
        Checkpoint.open(place).send(AddQuery("more", SQL, sink=hostile))
        engine.push(step(1))
        (refused,) = [event for event in engine.events if event.kind == "command_refused"]
        assert "does not send PGPASSWORD" in str(refused) and list(engine.manifest.queries) == ["pairs"]
        forged = replace(engine.manifest.queries["pairs"], sink=hostile)
        manifest = replace(engine.manifest, queries={"pairs": forged}, step=engine.manifest.step + 1)
        Checkpoint.open(place).manifests.publish(manifest)
    with pytest.raises(ms.SinkError, match=SAID):
        ms.Engine(checkpoint=place)
    assert main(["rewind", str(place), "0"]) == 1
    assert not told
    monkeypatch.setenv("PGPORT", str(port))
    with pytest.raises(ms.SinkError, match="PostgreSQL"):
        PostgresqlSink("t", dsn).open()
    assert b"secret" in told[0], "this server is told what it is to be told"
