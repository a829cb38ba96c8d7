"""A Chromium for tests, found or installed by the script that `make test` uses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from midstream.dashboard.server import Dashboard

expect.set_options(timeout=20_000)

TOKEN = "of no use elsewhere"
HOSTILE = "<script>document.title='owned'</script>\"'><img src=x onerror=alert(1)> \u202egnol " + "long" * 12

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


@contextmanager
def opened(browser: Browser, dashboard: Dashboard, fragment: str = "#/0/plan", **options: object) -> Iterator[Page]:
    """The page; at the end it has asked nobody else for anything, and its scripts have failed nowhere."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(20_000)
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.goto(dashboard.url)
    if fragment:
        page.evaluate("to => { location.hash = to }", fragment)
    try:
        yield page
    finally:
        context.close()
    assert {urlparse(url).netloc for url in asked if not url.startswith("data:")} == {f"127.0.0.1:{dashboard.port}"}
    assert not wrong
