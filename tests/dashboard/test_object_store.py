"""The dashboard of a job whose checkpoint is part of a bucket: while it runs, and when it has ended."""

from __future__ import annotations

from starlette.testclient import TestClient

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard import app as application
from midstream.dashboard.safety import Access
from midstream.dashboard.views import views
from tests.unit.building import table

TOKEN = "of no use elsewhere"


def test_every_view_is_there_and_commands_arrive(bucket: str) -> None:
    with ms.Engine(checkpoint=f"{bucket}/ckpt") as engine:
        for stream in "AB":
            engine.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("pairs", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS")
        for at in range(3):
            engine.push(dict.fromkeys("AB", table([at], k=[at])))
        served = application.application([Checkpoint.open(f"{bucket}/ckpt")], Access(token=TOKEN))
        client = TestClient(served, base_url="http://127.0.0.1:8765")
        assert client.get("/api/0").json()["step"] == 2
        for name in views():
            assert client.get(f"/api/0/views/{name}").status_code == 200, name
        command = {"command": "migrate", "query": "pairs", "plan": "(B A)", "strategy": "moving_state"}
        given = client.post("/api/0/commands", json=command, headers={"X-Midstream-Token": TOKEN})
        assert given.status_code == 201, given.text
        engine.push({})
        assert engine.report().query("pairs").plan == "(B A)"
    assert client.get("/api/0").json()["step"] == 3, "it has ended"
