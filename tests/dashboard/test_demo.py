"""What the README says, done by somebody who never saw the project: one command, one click, another plan."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect

from tests.dashboard.browser import chromium

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_s_command_shows_a_job_whose_plan_is_changed_by_a_click(tmp_path: Path) -> None:
    assert re.search(r"^make dashboard +#.*approve", (ROOT / "README.md").read_text(), re.MULTILINE)
    (command,) = re.findall(
        r"^dashboard:.*\n\t@\$\(bin\)/midstream (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    words = command.replace("build/dashboard", str(tmp_path / "out")).split()
    asked = [sys.executable, "-u", "-m", "midstream", *words, "--port", "0", "--pace", "0.3"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, cwd=ROOT) as job, chromium() as browser:
        try:
            assert job.stdout is not None
            url = next(line.split()[1] for line in job.stdout if line.startswith("dashboard: "))
            page = browser.new_page()
            page.goto(url)
            page.get_by_role("link", name="Plan").click(timeout=30_000)
            expect(page.locator("code.plan").first).to_have_text("((D W) L)", timeout=30_000)
            # A proposal may be withdrawn and made again at first: what is clicked is the one that stays.
            expect(page.locator("#standing")).to_contain_text(re.compile("step 1[2-9]"), timeout=60_000)
            page.get_by_role("button", name="Approve").click(timeout=30_000)
            expect(page.get_by_text("approve: is done")).to_be_visible(timeout=30_000)
            expect(page.locator("code.plan").first).to_have_text("((D L) W)", timeout=30_000)
        finally:
            job.terminate()
