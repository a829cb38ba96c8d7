"""What Prometheus is told: as its own parser reads it, as it is documented, as Grafana's board asks for it."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.dashboard.app import metrics_of
from midstream.dashboard.safety import Access
from midstream.dashboard.server import Dashboard
from midstream.explain.prometheus import CONTENT_TYPE, METRICS, Measured, exposition, prometheus_text
from midstream.model.errors import CheckpointError
from midstream.model.step_time import StepTime, StepTotals
from midstream.pipeline.metrics_server import MetricsServer
from tests.docs.pages import ROOT
from tests.unit.building import DDL, engine, table

SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
Found = dict[str, dict[tuple[tuple[str, str], ...], float]]


def read(text: str) -> Found:
    """By the name of a sample and its labels the value, as Prometheus's own parser reads it."""
    found: Found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values = found.setdefault(sample.name, {})
            key = tuple(sorted(sample.labels.items()))
            assert key not in values, "no series twice"
            values[key] = sample.value
    return found


def fed() -> Any:
    made = engine("AB", lateness=2_000_000)
    made.add_query("q", SQL, plan="(A B)")
    made.push({"A": table([1, 10], k=[1, 2]), "B": table([10, None], k=[1, 1])})
    made.migrate("q", "(B A)")
    made.push({"A": table([1], k=[1])})
    return made


def test_the_text_says_what_the_engine_says() -> None:
    made = fed()
    made.push({"B": table([10], k=[5])})
    found, report, last = read(made.metrics_text()), made.report(), made.times[-1]
    assert found["midstream_steps_total"] == {(): 3}
    assert found["midstream_rows_total"] == {(("stream", "A"),): 2, (("stream", "B"),): 2}
    assert found["midstream_late_rows_total"][("stream", "A"),] == 1
    assert found["midstream_rejected_rows_total"][("stream", "B"),] == 1
    assert found["midstream_results_total"] == {(("query", "q"),): report.queries["q"].counters.rows_out}
    assert found["midstream_state_rows"] == {(("query", "q"),): report.state_rows}
    assert found["midstream_comparisons_total"] == {(): report.counters.comparisons}
    assert found["midstream_migrations_total"] == {(): 1} and last.totals.migrations == 1
    assert found["midstream_step_seconds_count"] == {(("phase", "fold"),): 3}
    spent = sum(one.seconds for one in made.times)
    assert found["midstream_step_seconds_sum"][("phase", "fold"),] == pytest.approx(spent)
    assert found["midstream_watermark_lag_seconds"] == {(): last.watermark_lag} == {(): 2.0}
    assert found["midstream_last_step_timestamp_seconds"] == {(): last.ended}
    assert found["midstream_watermark_timestamp_seconds"][("stream", "A"),] == 8.0
    assert "midstream_step_interval_seconds" not in found, "nobody said one"


def test_hostile_names_stay_labels() -> None:
    name = 'a"} 1\n\\midstream_steps_total 7\nüñ{x="'
    made = ms.Engine()
    made.create_stream(name, DDL, timestamp="ts")
    made.add_query(name, f'''SELECT x.k FROM "{name.replace('"', '""')}" AS x [ROWS 3]''')
    made.push({name: table([1], k=[1])})
    found = read(made.metrics_text())
    assert found["midstream_rows_total"] == {(("stream", name),): 1}
    assert found["midstream_results_total"] == {(("query", name),): 1}
    assert found["midstream_steps_total"] == {(): 1}


def test_series_are_bounded_and_later_queries_take_none_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("midstream.explain.prometheus.MOST_QUERIES", 2)
    made = engine("AB")
    made.add_query("y", SQL)
    made.push()
    for name in "zab":
        made.add_query(name, SQL)
    made.push()
    found = read(made.metrics_text())
    assert {key[0][1] for key in found["midstream_results_total"]} == {"y", "a"}
    assert (found["midstream_queries"][()], found["midstream_queries_without_series"][()]) == (4, 2)


def test_several_jobs_are_told_apart_by_their_labels() -> None:
    one, other = fed(), engine("A")
    text = exposition([Measured(e.report(), e.times, {"checkpoint": n}) for n, e in (("x", one), ("y", other))])
    assert read(text)["midstream_steps_total"] == {(("checkpoint", "x"),): 2, (("checkpoint", "y"),): 0}
    assert text.count("# TYPE midstream_steps_total counter") == 1


def test_without_times_what_needs_no_clock_is_told() -> None:
    found = read(prometheus_text(fed().report()))
    assert "midstream_steps_total" in found and "midstream_last_step_seconds" not in found


def test_totals_go_on_where_the_steps_that_are_kept_are_few() -> None:
    times = [StepTime(9, 5.0, 0.5, {"fold": 0.5}, backlog={"A": 3}, totals=StepTotals(1_000, {"fold": 77.0}))]
    found = read(prometheus_text(fed().report(), times))
    assert found["midstream_step_seconds_sum"] == {(("phase", "fold"),): 77}
    assert found["midstream_step_seconds_count"] == {(("phase", "fold"),): 1_000}
    assert found["midstream_backlog"] == {(("stream", "A"),): 3}


def test_an_engine_serves_its_metrics() -> None:
    made = fed()
    with made.serve_metrics(port=0) as served:
        with urllib.request.urlopen(served.url) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert read(answer.read().decode())["midstream_steps_total"] == {(): 2}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(served.url.removesuffix("metrics"))
        port = int(served.url.split(":")[2].split("/")[0])
        with pytest.raises(ms.MidstreamError, match="cannot listen"):
            made.serve_metrics(port=port)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(served.url)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            CheckpointError("the file is damaged", place="/c", remedy="restore it"),
            "damaged (at /c). Remedy: restore it",
        ),
        (
            RuntimeError("no such thing"),
            "the metrics cannot be written: RuntimeError: no such thing (at /metrics). Remedy: report it",
        ),
    ],
)
def test_who_asks_is_told_where_the_metrics_cannot_be(
    error: Exception, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def failing() -> str:
        raise error

    with MetricsServer(failing, port=0) as served:
        with pytest.raises(urllib.error.HTTPError, match="503") as answer:
            urllib.request.urlopen(served.url)
        assert told in answer.value.read().decode()
        answer.value.close()
    assert capfd.readouterr() == ("", "")


def test_who_goes_away_before_the_answer_leaves_nothing_in_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    asked, gone = threading.Event(), threading.Event()

    def slow() -> str:
        asked.set()
        gone.wait(10)
        return "x" * (1 << 24)

    with MetricsServer(slow, port=0) as served:
        host, port = served.url.split("/")[2].split(":")
        with socket.create_connection((host, int(port))) as asking:
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            asking.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert asked.wait(10)
        gone.set()
        threads = [one for one in threading.enumerate() if "process_request_thread" in one.name]
        for thread in threads:
            thread.join(10)
    assert capfd.readouterr() == ("", "")


def test_the_command_writes_a_file_and_the_dashboard_has_a_route(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        with ms.Engine(checkpoint=tmp_path / name) as made:
            made.create_stream("A", DDL, timestamp="ts")
            made.add_query("q", "SELECT A.k FROM A")
            made.push({"A": table([1], k=[1])})
    one, two = (Checkpoint.open(tmp_path / name) for name in ("one", "two"))
    assert main(["metrics", str(tmp_path / "one")]) == 0
    printed = capsys.readouterr().out
    assert printed == prometheus_text(one.report(), one.step_times()) == metrics_of([one])
    assert main(["metrics", str(tmp_path / "one"), "--out", str(tmp_path / "prom" / "job.prom")]) == 0
    assert (tmp_path / "prom" / "job.prom").read_text() == printed and capsys.readouterr().out == ""
    assert [file.name for file in (tmp_path / "prom").iterdir()] == ["job.prom"]
    assert main(["metrics", str(tmp_path / "one"), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["queries"]["q"]["rows_out"] == 1 and value["time"]["step"] == 0
    (tmp_path / "none" / "manifests").mkdir(parents=True)
    with (
        Dashboard([tmp_path / name for name in ("one", "two", "none")], Access(), port=0) as served,
        urllib.request.urlopen(f"{served.url}metrics") as answer,
    ):
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        found = read(answer.read().decode())
    assert found["midstream_steps_total"] == {(("checkpoint", job.url),): 1 for job in (one, two)}


def test_the_documentation_lists_every_metric_as_it_is() -> None:
    text = (ROOT / "docs" / "howto" / "monitor.md").read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    listed = [tuple(row) for row in rows if row[0].startswith("`midstream_")]
    assert listed == [(f"`{m.name}`", m.kind, ", ".join(f"`{one}`" for one in m.labels), m.help) for m in METRICS]


def test_every_metric_that_the_board_asks_for_is_there_with_its_labels() -> None:
    board = json.loads((ROOT / "examples" / "grafana" / "midstream.json").read_text())
    known = {name: m for m in METRICS for name in (m.name, *(f"{m.name}_{part}" for part in ("sum", "count")))}
    asked = [target for panel in board["panels"] for target in panel["targets"]]
    names = [name for target in asked for name in re.findall(r"midstream_\w+", target["expr"])]
    assert len(names) > 15 and set(names) <= known.keys()
    summaries = {m.name for m in METRICS if m.kind == "summary"}
    assert not summaries & set(names), "a summary is asked for by _sum and _count"
    for target in asked:
        labels = {label for name in re.findall(r"midstream_\w+", target["expr"]) for label in known[name].labels}
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
    for variable in board["templating"]["list"]:
        assert set(re.findall(r"midstream_\w+", variable["query"])) <= known.keys()
