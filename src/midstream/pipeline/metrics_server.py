"""`/metrics` of a program that runs queries, for Prometheus to scrape: no other package, no other page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from midstream.explain.prometheus import CONTENT_TYPE
from midstream.model.errors import MidstreamError

METRICS_PORT = 9464


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore a request whose sender has gone away: it is nothing to print in the terminal of a job."""


def _answer(text: Callable[[], str]) -> tuple[int, str]:
    try:
        return 200, text()
    except MidstreamError as error:
        return 503, f"{error}\n"
    except Exception as error:  # Any failure is reported to the one who asks.
        remedy = "report it; the job itself is not disturbed"
        fault = MidstreamError(
            f"the metrics cannot be written: {type(error).__name__}: {error}", place="/metrics", remedy=remedy
        )
        return 503, f"{fault}\n"


class MetricsServer:
    """Serves a text at `/metrics` from a thread, until it is closed; usable as a context manager.

    It says what it is asked and changes nothing. Who asks waits for the text, no step does.
    """

    def __init__(self, text: Callable[[], str], port: int = METRICS_PORT, host: str = "127.0.0.1") -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = _answer(text) if self.path.partition("?")[0] == "/metrics" else (404, "see /metrics\n")
                data = body.encode()
                self.send_response(status)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Write nothing to the terminal."""

        try:
            self._server = _Server((host, port), Handler)
        except (OSError, OverflowError, TypeError) as error:
            raise MidstreamError(
                f"cannot listen: {getattr(error, 'strerror', None) or error}",
                place=f"{host} port {port}",
                remedy="name another port, or 0 for any free port",
            ) from error
        self.url = f"http://{host}:{self._server.server_address[1]}/metrics"
        threading.Thread(target=self._server.serve_forever, name="midstream-metrics", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<metrics at {self.url}>"
