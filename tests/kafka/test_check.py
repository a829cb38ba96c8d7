"""`midstream check`, status and metrics of jobs between topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from midstream.cli.main import main
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from midstream.embedded.job_run import FileJob
from midstream.sql.job_file import parse_job
from tests.dashboard.browser import chromium, opened
from tests.kafka.broker import Broker, job_text, stream
from tests.kafka.test_source import ALL, job, row
from tests.kafka.test_values import ORDER, Schemas
from tests.kafka.test_values import registry as registry


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def checked(streams: Any, sink: Any, capsys: pytest.CaptureFixture[str], engine: str = "embedded") -> str:
    Path("job.toml").write_text(job_text(streams, ALL, sink))
    capsys.readouterr()
    code = main(["check", "job.toml", "--engine", engine])
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


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_both_hosts_tell_a_wrong_topic_option_and_schema(
    engine: str, kafka: Broker, registry: Schemas, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, sink = kafka.topic("orders"), {"path": "out"}
    registry.subjects[f"{topic}-value"] = {"schema": json.dumps(ORDER), "schemaType": "AVRO"}
    for changed, says in (
        ({}, "no fault found"),
        ({"options": {"subscribe": f"{topic}x"}}, f"there is no topic '{topic}x'"),
        ({"options": {"startingOffsets": "soon"}}, "startingOffsets is 'soon'"),
        ({"options": {"maxOffsetsPerTrigger": "few"}}, "not a whole number above 0"),
        ({"schema": "k BIGINT, v VARCHAR, w INT, ts TIMESTAMP"}, "has no field 'w'"),
        ({"value": "protobuf"}, "of type AVRO"),
    ):
        streams = {"A": stream(kafka, topic, **{"value": "avro", **changed})}
        assert says in checked(streams, sink, capsys, engine)


def test_no_secret_is_in_a_checkpoint(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, out = kafka.topic("orders"), kafka.topic("out")
    kafka.send(topic, [row(1), b"broken"])
    Path("settings").write_text("sasl.username=of-the-file\nsasl.password=secret-of-the-file\n")
    for name, value in {"BOOTSTRAP_SERVERS": kafka.servers, "SASL_PASSWORD": "secret", "CONFIG": "settings"}.items():
        monkeypatch.setenv(f"MIDSTREAM_KAFKA_{name}", value)
    text = job_text({"A": stream(kafka, topic)}, ALL, {"type": "kafka", "topic": out})
    with FileJob(parse_job(text)) as running:
        assert running.step()
    assert len(kafka.messages(out)) == 1
    files = [one for one in Path("ckpt").rglob("*") if one.is_file()]
    assert files
    assert not any(word in one.read_bytes() for one in files for word in (b"secret", b"of-the-file"))


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
