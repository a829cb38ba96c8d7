"""Exit codes are those that the docs list, and a shell can complete the commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import midstream as ms
from midstream.cli.main import FAILED, INTERRUPTED, OK, WRONG_USE, app, main

DOCS = Path(__file__).parents[3] / "docs" / "job_files.md"


def test_the_docs_list_them() -> None:
    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", DOCS.read_text(), re.MULTILINE)]
    assert listed == [OK, FAILED, WRONG_USE, INTERRUPTED]


def test_each_as_the_docs_say(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "ckpt")
    with ms.Engine(checkpoint=checkpoint) as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("all", "SELECT A.k FROM A")
        engine.push({})
        assert main(["status", checkpoint]) == OK
        assert main(["rescale", checkpoint, "--lanes", "2", "--wait", "0"]) == FAILED
        assert main(["savepoint", checkpoint, "one", "--no-such-option"]) == WRONG_USE
        assert main(["drop", checkpoint, "nobody"]) == WRONG_USE
        assert main(["status", str(tmp_path / "nowhere")]) == WRONG_USE
        assert main(["rewind", checkpoint, "0"]) == FAILED, "it is held"


@pytest.mark.parametrize(
    "command", [command.callback.__name__ for command in app.registered_commands if command.callback]
)
def test_every_command_that_reads_gives_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    if command in ("dashboard",):
        return  # It serves pages, and JSON over HTTP.
    assert main([command, "--help"]) == OK
    assert "--json" in capsys.readouterr().out


def test_a_shell_completes_commands() -> None:
    asked = {"_MIDSTREAM_COMPLETE": "complete_bash", "COMP_WORDS": "midstream sta", "COMP_CWORD": "1"}
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))}
    program = "import sys; from midstream.cli.main import main; sys.exit(main([]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **paths, **asked},
    )
    assert sorted(done.stdout.split()) == ["state", "status"], done.stderr
