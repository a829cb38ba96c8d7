"""Who may ask what, over HTTP: hosts, tokens, other sites; and what is not sent twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard import app as application
from midstream.dashboard.api import Api
from midstream.dashboard.app import STATIC
from midstream.dashboard.job_reading import ANSWERS_KEPT, JobReading
from midstream.dashboard.safety import Access, access
from midstream.dashboard.views import views
from tests.dashboard.jobs import Played, played

TOKEN = "of no use elsewhere"
PIN = {"command": "pin", "query": "q"}


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Played]:
    found = played(tmp_path / "ckpt")
    found.push(2)
    with found.engine:
        yield found


def client(folder: Path, allowed: Access, host: str = "127.0.0.1:8765") -> TestClient:
    return TestClient(application.application([Checkpoint.open(folder / "ckpt")], allowed), base_url=f"http://{host}")


def test_another_host_name_is_refused(job: Played, tmp_path: Path) -> None:
    assert client(tmp_path, Access(), "rebound.example").get("/api/0").status_code == 421
    assert client(tmp_path, Access(), "localhost:1").get("/api/0").status_code == 200
    assert client(tmp_path, Access(names=("known.example",)), "known.example").get("/api/0").status_code == 200


def test_every_answer_says_what_a_browser_must_refuse(job: Played, tmp_path: Path) -> None:
    for path in ("/", "/api/0", "/static/app.js", "/api/9", "/nothing"):
        headers = client(tmp_path, Access()).get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in headers


def test_commands_need_the_token(job: Played, tmp_path: Path) -> None:
    def answered(allowed: Access, **headers: str) -> tuple[int, str]:
        found = client(tmp_path, allowed).post("/api/0/commands", json=PIN, headers=headers)
        return found.status_code, found.json().get("remedy", "")

    assert answered(Access(), **{"X-Midstream-Token": TOKEN}) == (403, application.READ_ONLY)
    assert answered(Access(token=TOKEN))[0] == 403
    assert answered(Access(token=TOKEN), **{"X-Midstream-Token": "wrong"})[0] == 403
    assert answered(Access(token=TOKEN), **{"X-Midstream-Token": TOKEN, "Origin": "http://evil.example"})[0] == 403
    job.push()
    assert not job.engine.report().query("q").optimizer.pinned
    assert answered(Access(token=TOKEN), **{"X-Midstream-Token": TOKEN}) == (201, "")
    job.push()
    assert job.engine.report().query("q").optimizer.pinned


@pytest.mark.parametrize(
    "command",
    [
        {"command": "pin", "query": "nobody"},
        {"command": "no such", "query": "q"},
        {"command": "migrate", "query": "q", "plan": "((A B"},
        {"command": "migrate", "query": "q", "plan": 7},
        {"command": "rescale", "lanes": "many"},
        {"command": "add_query", "query": "r", "sql": "SELECT"},
        {"command": "drop_query"},
        {"query": "q"},
        ["pin", "q"],
        7,
        None,
    ],
)
def test_what_the_job_would_refuse_is_not_appended(command: object, job: Played, tmp_path: Path) -> None:
    found = client(tmp_path, Access(token=TOKEN)).post(
        "/api/0/commands", json=command, headers={"X-Midstream-Token": TOKEN}
    )
    assert found.status_code == 400
    assert found.json()["error"] and found.json()["remedy"]
    assert Checkpoint.open(tmp_path / "ckpt").commands.numbers() == []


def test_what_has_not_changed_is_not_computed(job: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again with its ETag nothing is read but names; after a step, or a command, there is another answer."""
    asking = client(tmp_path, Access())
    path = "/api/0/views/plan"
    tag = asking.get(path).headers["etag"]
    with monkeypatch.context() as broken:
        broken.setattr(Checkpoint, "manifest", None)
        assert asking.get(path, headers={"If-None-Match": tag}).status_code == 304
    job.push()
    second = asking.get(path, headers={"If-None-Match": tag})
    assert second.status_code == 200
    Checkpoint.open(tmp_path / "ckpt").commands.append(ms.commands.pin.Pin("q"))
    assert asking.get(path, headers={"If-None-Match": second.headers["etag"]}).status_code == 200


def test_of_a_step_one_manifest_is_read_once(job: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many views show it: of a job with 1,000 queries that is most of what a dashboard costs."""
    asking, read = client(tmp_path, Access()), list[str]()
    asking.get("/api/0")
    made = ManifestLog._made
    monkeypatch.setattr(ManifestLog, "_made", lambda self, *given: read.append("") or made(self, *given))
    for _ in range(3):
        job.push()
        read.clear()
        kept = asking.get("/api/0").json()["steps"]
        for name in views():
            asking.get(f"/api/0/views/{name}")
        assert (len(read), kept) == (1, [*range(kept[-1] + 1)])


def test_whatever_is_asked_memory_stays_bounded(job: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters that a view does not read make no other answer, and of those that it reads the last are kept."""
    api, computed = Api([Checkpoint.open(tmp_path / "ckpt")]), list[Mapping[str, str]]()
    queries = views()["queries"]

    def counted(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
        computed.append(options)
        return queries.data(reading, options)

    monkeypatch.setitem(views(), "queries", replace(queries, data=counted))
    for number in range(200):
        api.view(0, "queries", {"junk": str(number), "search": "q"})
    assert computed == [{"search": "q"}]
    for number in range(200):
        api.view(0, "queries", {"search": f"q{number}"})
    assert len(computed) == 201 and len(api._reading(0, {}).answers) == ANSWERS_KEPT


def test_any_kept_step_is_shown_as_it_was(job: Played, tmp_path: Path) -> None:
    job.push(3)
    asking = client(tmp_path, Access())
    newest, before = (asking.get(f"/api/0/views/plan{at}").json() for at in ("", "?step=2"))
    assert newest["rates"]["steps"] == [0, 1, 2, 3, 4] and before["rates"]["steps"] == [0, 1, 2]
    assert asking.get("/api/0?step=77").status_code == 400


def test_control_on_a_host_that_others_reach_needs_a_token_of_the_users() -> None:
    with pytest.raises(ms.MidstreamError, match="needs a token"):
        access("0.0.0.0", control=True)
    assert access("0.0.0.0", control=True, token=TOKEN).token == TOKEN
    assert access(control=True).token
    with pytest.raises(ms.MidstreamError, match="without --control"):
        access(token=TOKEN)


def test_an_engine_in_memory_says_what_to_do() -> None:
    with pytest.raises(ms.MidstreamError, match=r"Engine\(checkpoint="):
        ms.Engine().dashboard()


def test_there_is_little_script_and_every_view_has_its_own() -> None:
    scripts = list(STATIC.rglob("*.js"))
    assert sum(script.stat().st_size for script in scripts) < 200_000
    own = [script for script in scripts if "vendor" not in script.parts]
    assert all(len(script.read_text().splitlines()) < 300 for script in own)
    assert {view.name for view in views().values()} == {script.stem for script in (STATIC / "views").glob("*.js")}
    assert not [s.name for s in own if any(w in s.read_text() for w in ("innerHTML", "insertAdjacentHTML", "eval("))]
