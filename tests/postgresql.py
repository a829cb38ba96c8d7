"""A PostgreSQL server for tests: begun by itself on a free port, with its data in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "ensure_postgresql.sh"
USER, PASSWORD = "midstream", "of no use elsewhere"


@dataclass
class Server:
    """A server that takes connections over TCP, with a password."""

    programs: Path
    folder: Path
    user: dict[str, Any]
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """Without the password, which is in the environment."""
        return f"host=127.0.0.1 port={self.port} user={USER} dbname=postgres"

    def execute(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(text, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Begin to serve; returns when connections are taken."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "timezone": "Asia/Kathmandu",  # One that nothing may hang on.
        }
        given = [f"-c{name}={value}" for name, value in settings.items()]
        command = [self.programs / "postgres", f"-D{self.folder}/data", *given]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stderr=log, cwd=self.folder, **self.user)
        for _ in range(600):
            assert self.process.poll() is None, (self.folder / "log").read_text()
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                time.sleep(0.05)

    def stop(self) -> None:
        """End at once, as an administrator does who cannot wait; connections break."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)
            self.process = None


@contextmanager
def server() -> Iterator[Server]:
    """A server while the block lasts; its password is in `PGPASSWORD`, and `PGHOST` and `PGPORT` say whose it is."""
    programs = _programs()
    # Not below pytest's folder, which only its own user may enter: a server does not run as root.
    folder = Path(tempfile.mkdtemp(prefix="midstream-postgresql-"))
    names = ("PGPASSWORD", "PGHOST", "PGPORT")
    before = {name: os.environ[name] for name in names if name in os.environ}
    try:
        user = _unprivileged(folder)
        (folder / "password").write_text(PASSWORD)
        (folder / "password").chmod(0o644)
        asked = [f"--username={USER}", "--auth=scram-sha-256", f"--pwfile={folder}/password", "--encoding=UTF8"]
        asked += ["--locale=C", "--no-sync", "--no-instructions", f"--pgdata={folder}/data"]
        subprocess.run([programs / "initdb", *asked], cwd=folder, check=True, capture_output=True, **user)
        begun = Server(programs, folder, user, _free_port())
        os.environ.update(dict(zip(names, (PASSWORD, "127.0.0.1", str(begun.port)), strict=True)))
        try:
            begun.start()
            yield begun
        finally:
            begun.stop()
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    if found.returncode:
        # Where all is checked a test that did not run must not look like one that passed.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(found.stderr)
    return Path(found.stdout.strip())


def _unprivileged(folder: Path) -> dict[str, Any]:
    """What makes `subprocess` run as somebody other than root."""
    if os.getuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if "postgres" in names else "nobody"
    os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
