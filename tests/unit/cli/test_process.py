"""The command as a process: exit codes, streams, what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import midstream as ms
from midstream.cli.main import app
from tests.forked import run
from tests.unit.cli.conftest import SmallJob

SOURCE = Path(__file__).resolve().parents[3] / "src"


def midstream(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run("midstream", *arguments, **environment)


def test_exit_codes(job: SmallJob, tmp_path: Path) -> None:
    done = midstream("status", str(job.path))
    assert (done.returncode, done.stderr) == (0, "")
    assert midstream("status", str(tmp_path)).returncode == 2
    assert midstream("status").returncode == 2
    assert midstream("--version").stdout.startswith("midstream 0.")
    vain = midstream("drop", str(job.path), "pairs", "--wait", "0")
    assert vain.returncode == 1 and "Traceback" not in vain.stderr


def test_output_in_a_pipe_is_plain_text(job: SmallJob) -> None:
    assert "\x1b" not in midstream("status", str(job.path), TERM="xterm-256color").stdout


def test_text_that_the_terminal_cannot_show_does_not_end_a_command(tmp_path: Path) -> None:
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("grüße😀", "SELECT k AS ä FROM A")
        engine.push({})

    def of(*command: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "ascii"}
        command = (sys.executable, "-m", "midstream", *command, str(tmp_path / "ckpt"))
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode("ascii")

    assert r"gr\xfc\xdfe\U0001f600" in of("status")
    assert "grüße😀" in json.loads(of("status", "--json"))["queries"]


@pytest.mark.parametrize("amid", ["pyarrow", "midstream.cli.table"])
def test_an_interrupt_during_an_import_ends_the_command_without_a_traceback(amid: str) -> None:
    program = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name == {amid!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting)\n"
        "from midstream_cli import main\n"
        "sys.exit(main())"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program, "--help"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_an_inner_failure_has_a_traceback_only_on_demand(job: SmallJob) -> None:
    program = (
        "import sys; from midstream.checkpoint.reader import Checkpoint; from midstream.cli.main import main\n"
        "Checkpoint.open = None\n"
        f"sys.exit(main(['status', {str(job.path)!r}]))"
    )

    def broken(**environment: str) -> subprocess.CompletedProcess[str]:
        environment |= {**os.environ, "PYTHONPATH": str(SOURCE)}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )

    quiet = broken()
    assert quiet.returncode == 1 and quiet.stderr.count("\n") == 1 and "MIDSTREAM_TRACEBACK" in quiet.stderr
    loud = broken(MIDSTREAM_TRACEBACK="1")
    assert loud.returncode == 1 and "Traceback" in loud.stderr


def test_commands_on_a_checkpoint_load_no_spark(job: SmallJob) -> None:
    path = str(job.path)
    commands = [["status", path], ["explain", path, "pairs"], ["drop", path, "pairs"]]
    program = (
        "import sys; from midstream.cli.main import main\n"
        f"for arguments in {commands}:\n"
        "    assert main(arguments) == 0\n"
        "    assert 'pyspark' not in sys.modules and 'midstream.spark.job' not in sys.modules, arguments\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, capture_output=True)


def test_every_command_explains_itself() -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["--help"])
    assert shown.exit_code == 0
    for command in ("demo", "run", "status", "explain", "migrate", "add", "change", "drop", "rescale", "reshare"):
        assert command in shown.output
        help_text = runner.invoke(app, [command, "--help"])
        assert help_text.exit_code == 0 and "--json" in help_text.output, command


def test_a_job_file_that_is_wrong_is_wrong_use(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    assert midstream("run", str(file)).returncode == 2
    file.write_text("checkpoint = 'c'\n[streams.A]\nformat = 'json'\n")
    wrong = midstream("run", str(file))
    assert wrong.returncode == 2 and "timestamp" in wrong.stderr and "Remedy:" in wrong.stderr


def test_a_checkpoint_that_cannot_be_written_fails_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    file = tmp_path / "job.toml"
    file.write_text(f"checkpoint = '{tmp_path}/taken'\n[streams.A]\nformat = 'rate'\ntimestamp = 'timestamp'\n")
    failed = midstream("run", str(file), "--once")
    assert failed.returncode == 1 and failed.stderr.startswith("midstream: ") and "taken" in failed.stderr
    assert failed.stderr.count("\n") == 1


def test_the_demo_does_not_clear_a_folder_of_other_things(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    refused = midstream("demo", "--out", str(tmp_path))
    assert refused.returncode == 2 and "files that the demo did not write" in refused.stderr
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
