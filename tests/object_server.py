"""An S3 server for tests, over HTTP: it counts the requests it answers, and refuses some when it is told to.

`python -m tests.object_server PORT [JOURNAL]` runs one; with a journal it may be killed and started again. Beside
moto's S3 it answers under `/_control`: GET gives the requests since the last GET as JSON, POST takes `Trouble` as JSON,
and from then on some requests fare as it says.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.object_journal import Journal

BUCKET = "midstream-tests"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hidden-from-all", "AWS_REGION": "us-east-1"}
CONTROL = "/_control"

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""A WSGI application."""


@dataclass(frozen=True)
class Trouble:
    """What becomes of the next `times` requests of some `methods` whose path has `part` in it (-1: of all)."""

    status: int = 503
    code: str = "SlowDown"
    times: int = -1
    seconds: float = 0.0
    methods: tuple[str, ...] = ("GET", "HEAD", "PUT", "POST", "DELETE")
    part: str = ""


@dataclass(frozen=True)
class Request:
    """A request that was answered: its kind is the method, or LIST, COPY or DELETE_MANY; `listed` counts names."""

    kind: str
    path: str
    listed: int = 0


@dataclass
class ObjectServer:
    """A server in a process of its own. With a `journal` it holds, when it is started again, what it acknowledged."""

    port: int
    process: subprocess.Popen[bytes] | None = None
    journal: Path | None = None
    module: str = "tests.object_server"

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to get at it."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "MIDSTREAM_STORE_PATIENCE": "2"}

    def start(self) -> None:
        """Start it, with one bucket; what an earlier process of it held is gone, unless it has a journal."""
        command = [sys.executable, "-m", self.module, str(self.port)]
        command += [] if self.journal is None else [str(self.journal)]
        root = Path(__file__).resolve().parent.parent
        self.process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.port)):
                    break
            assert self.process.poll() is None, "the object server died"
            time.sleep(0.05)
        self._ask()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def kill(self) -> None:
        """As when the power fails."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def requests(self) -> list[Request]:
        """What was answered since the last call."""
        return [Request(*one) for one in json.loads(self._ask())]

    @contextmanager
    def in_trouble(self, trouble: Trouble) -> Iterator[None]:
        self.make(trouble)
        try:
            yield
        finally:
            self.make(Trouble(times=0))

    def make(self, trouble: Trouble) -> None:
        self._ask(json.dumps(asdict(trouble)).encode())

    def _ask(self, data: bytes | None = None) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{CONTROL}", data) as answer:
            return bytes(answer.read())


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Counting:
    """The application between a client and moto's."""

    def __init__(self, application: Application) -> None:
        self.application, self.requests, self.lock = application, list[tuple[str, str, int]](), threading.Lock()
        self.trouble, self.ready = Trouble(times=0), threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path == CONTROL:
            return self._control(environ, start_response)
        if self._refuses(method, path):
            time.sleep(self.trouble.seconds)
            if self.trouble.status:
                body = f"<Error><Code>{self.trouble.code}</Code><Message>as told</Message></Error>".encode()
                start_response(f"{self.trouble.status} Refused", [("Content-Length", str(len(body)))])
                return [body]
        answer = b"".join(self.application(environ, start_response))
        kind = _kind(method, environ)
        listed = answer.count(b"<Contents>") + answer.count(b"<CommonPrefixes>") if kind == "LIST" else 0
        prefix = parse_qs(environ.get("QUERY_STRING", "")).get("prefix", [""])[0]
        with self.lock:
            self.requests.append((kind, f"{path}/{prefix}", listed))
        return [answer]

    def _control(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answer = b""
        self.ready.wait()
        with self.lock:
            if environ["REQUEST_METHOD"] == "POST":
                given = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
                self.trouble = Trouble(**given)
            else:
                answer, self.requests = json.dumps(self.requests).encode(), []
        start_response("200 OK", [("Content-Length", str(len(answer)))])
        return [answer]

    def _refuses(self, method: str, path: str) -> bool:
        with self.lock:
            told = self.trouble
            if told.times == 0 or method not in told.methods or told.part not in path:
                return False
            if told.times > 0:
                self.trouble = Trouble(**{**asdict(told), "times": told.times - 1})
        return True


def _kind(method: str, environ: Mapping[str, Any]) -> str:
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    if method == "GET" and ("list-type" in query or "prefix" in query):
        return "LIST"
    if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return "COPY"
    return "DELETE_MANY" if method == "POST" and "delete" in query else method


def main(port: int, journal: str = "", dialect: Callable[[Application], Application] = lambda plain: plain) -> None:
    os.environ.update(CREDENTIALS, MOTO_PORT=str(port), MOTO_S3_CUSTOM_ENDPOINTS=f"http://127.0.0.1:{port}")
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    WSGIRequestHandler.protocol_version = "HTTP/1.1"  # Connections stay open, as those of a real one.
    backend = DomainDispatcherApplication(create_backend_app)
    application = Counting(dialect(Journal(backend, Path(journal)) if journal else backend))
    server = make_server("127.0.0.1", port, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    application.requests.clear()
    application.ready.set()
    thread.join()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
