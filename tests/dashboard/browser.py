"""A Chromium for tests, found or installed by the script that `make test` uses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "ensure_chromium.sh"


def program() -> str:
    found = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    if found.returncode:
        # Where all is checked a test that did not run must not look like one that passed.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(found.stderr)
    return found.stdout.strip()


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
