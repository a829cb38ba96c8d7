"""Azurite for tests: Microsoft's own server of the blob interface of Azure, begun on a free port, all in memory."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate

import pytest

from tests.object_server import free_port

PROGRAM = "AZURITE_BLOB"
"""The environment's name for the program, where it is not on the path."""

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""What everybody's Azurite takes; its documentation says so."""

CONTAINER = "midstream-tests"
_VERSION = "2021-08-06"


@contextmanager
def server() -> Iterator[Mapping[str, str]]:
    """A server while the block lasts, with one container; the environment by which clients find it."""
    program = os.environ.get(PROGRAM) or shutil.which("azurite-blob")
    if program is None:
        pytest.skip(f"Azurite is not installed: npm install -g azurite, or name its azurite-blob in {PROGRAM}")
    port = free_port()
    command = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence", "--silent"]
    begun = subprocess.Popen([*command, "--skipApiVersionCheck", "--disableTelemetry"], stdout=subprocess.DEVNULL)
    try:
        _make_container(port, begun)
        yield {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
        }
    finally:
        begun.terminate()
        begun.wait(60)


def _make_container(port: int, begun: subprocess.Popen[bytes]) -> None:
    """The container's name is part of what Azure has its clients sign, beside the time."""
    for _ in range(600):
        assert begun.poll() is None, "Azurite ended"
        now = formatdate(usegmt=True)
        signed = f"PUT{12 * chr(10)}x-ms-date:{now}\nx-ms-version:{_VERSION}\n/{ACCOUNT}/{ACCOUNT}/{CONTAINER}"
        mark = hmac.new(base64.b64decode(KEY), f"{signed}\nrestype:container".encode(), hashlib.sha256).digest()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/{ACCOUNT}/{CONTAINER}?restype=container",
            headers={
                "x-ms-date": now,
                "x-ms-version": _VERSION,
                "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(mark).decode()}",
            },
            method="PUT",
        )
        try:
            urllib.request.urlopen(asked, timeout=10).close()
            return
        except urllib.error.HTTPError:
            raise
        except OSError:  # It does not serve yet.
            time.sleep(0.1)
    raise AssertionError("Azurite does not answer")
