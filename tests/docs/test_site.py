"""The site builds, reference and all, without a single warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import PAGES, ROOT


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-c",
        "docs",
        "-d",
        str(tmp_path / "doctrees"),
    ]
    built = subprocess.run([*command, ".", str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    pages = [page for page in PAGES if page.name != "README.md"]
    assert [p.name for p in pages if not (tmp_path / "site" / p.name).with_suffix(".html").is_file()] == []
    assert "create_stream" in (tmp_path / "site" / "docs" / "api" / "index.html").read_text()
    commands = (tmp_path / "site" / "docs" / "command_line.html").read_text()
    assert 'id="midstream-migrate"' in commands and "--strategy" in commands
