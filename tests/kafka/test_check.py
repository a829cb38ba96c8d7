"""`midstream check`, status and metrics of jobs between topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from midstream.cli.main import main
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from tests.dashboard.browser import chromium, opened
from tests.kafka.broker import Broker, job_text, stream
from tests.kafka.test_source import ALL, job, row


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def checked(streams: Any, sink: Any, capsys: pytest.CaptureFixture[str]) -> str:
    Path("job.toml").write_text(job_text(streams, ALL, sink))
    capsys.readouterr()
    code = main(["check", "job.toml", "--engine", "embedded"])
    said = capsys.readouterr()
    assert bool(code) == ("Remedy" in said.out + said.err), (code, said)
    return " ".join((said.out + said.err).split())


def test_what_is_wrong_is_told_before_the_run(kafka: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    topic, out = kafka.topic("orders"), kafka.topic("out")
    good = {"type": "kafka", "topic": out, "servers": kafka.servers, "key": ["k"]}
    streams = {"A": stream(kafka, topic)}
    assert "there is no" not in checked(streams, good, capsys)
    assert f"there is no topic '{topic}x'" in checked({"A": stream(kafka, f"{topic}x")}, good, capsys)
    wrong = {"A": stream(kafka, topic, options={"startingOffsets": "soon"})}
    assert "startingOffsets is 'soon'" in checked(wrong, good, capsys)
    assert "make the topic" in checked(streams, {**good, "topic": f"{out}x"}, capsys)
    assert "no column 'id'" in checked(streams, {**good, "key": ["id"]}, capsys)


def test_the_lag_of_each_partition_is_shown(kafka: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    topic = kafka.topic("orders", 2)
    for partition in range(2):
        kafka.send(topic, [row(k) for k in range(3 + partition)], partition)
    with job({"A": stream(kafka, topic, options={"maxOffsetsPerTrigger": 4})}) as running:
        running.step()
    capsys.readouterr()
    assert main(["status", "ckpt"]) == 0
    assert "backlog 3 (A[0] 1, A[1] 2)" in " ".join(capsys.readouterr().out.split())
    assert main(["metrics", "ckpt"]) == 0
    assert 'midstream_backlog{stream="A[1]"} 2' in capsys.readouterr().out.replace('job="', "").replace(" 2.0", " 2")


@pytest.mark.verify
def test_the_dashboard_shows_the_lag_of_each_partition(kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    for partition in range(2):
        kafka.send(topic, [row(k) for k in range(3 + partition)], partition)
    with job({"A": stream(kafka, topic, options={"maxOffsetsPerTrigger": 4})}) as running:
        running.step()
    with (
        chromium() as browser,
        Dashboard([Path("ckpt")], Access(), port=0) as dashboard,
        opened(browser, dashboard, "#/0/steps") as page,
    ):
        expect(page.locator("body")).to_contain_text("A[0]: 1, A[1]: 2")
