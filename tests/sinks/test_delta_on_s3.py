"""A Delta table on an object store, by the protocol of S3 over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from midstream.sinks.delta import DeltaSink
from tests.sinks.steps import commit


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a server in a process of its own, for the library holds Python up while it waits."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    asked = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert process.poll() is None, "the server died"
                time.sleep(0.05)
            given = {"ENDPOINT_URL": f"http://127.0.0.1:{port}", "ALLOW_HTTP": "true", "REGION": "us-east-1"}
            for name, value in {**given, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "hidden"}.items():
                monkeypatch.setenv(f"AWS_{name}", value)
            boto3.client("s3", endpoint_url=given["ENDPOINT_URL"], region_name="us-east-1").create_bucket(Bucket="lake")
            yield "s3://lake"
        finally:
            process.terminate()


def test_of_many_drivers_with_one_step_only_one_appends(bucket: str, tmp_path: Path) -> None:
    url = f"{bucket}/results"

    def append(number: int, step: int) -> None:
        commit(DeltaSink(url), tmp_path / str(number), step, pa.table({"k": [step]}))

    def keys() -> list[int]:
        return sorted(DeltaTable(url).to_pyarrow_table()["k"].to_pylist())

    for step in range(3):
        append(0, step)
    drivers = [threading.Thread(target=append, args=(number, 3)) for number in range(4)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert keys() == [0, 1, 2, 3]
    DeltaSink(url).forget_after("q", 1)
    assert keys() == [0, 1]
    assert "hidden" not in str(DeltaSink(url).to_json())
