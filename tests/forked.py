"""Programs in processes of their own that start at once: `python -m tests.forked MODULE...` is where they fork off.

To start Python and import what a program needs takes seconds; to fork a process that has done so takes none. What is
run so is as if it had been started: its arguments, environment, folder and streams are its own, and it may be killed.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PATHS = os.pathsep.join([str(ROOT / "src"), str(ROOT)])


class Forks:
    """The process that programs are forked from, with the modules that it imports first."""

    def __init__(self, *modules: str) -> None:
        self._folder, self._numbers = TemporaryDirectory(prefix="midstream-forks-"), count()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.forked", *modules],
            env={**os.environ, "PYTHONPATH": PATHS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(
        self,
        program: str,
        *arguments: str | Path,
        first: tuple[str, Sequence[object]] | None = None,
        **environment: str,
    ) -> Fork:
        """Start `python -m PROGRAM ARGUMENTS`, or `python PROGRAM.py ARGUMENTS`, in this process' folder.

        `first` names a function, as `module:name`, that is called there before, and what with.
        """
        said = Path(self._folder.name) / str(next(self._numbers))
        for end in ("out", "errors"):
            said.with_suffix(f".{end}").touch()
        variables = {**os.environ, "PYTHONPATH": PATHS, **environment}
        words = [str(argument) for argument in arguments]
        return Fork(self, self.ask("start", program, words, os.getcwd(), variables, first, str(said)), said)

    def ask(self, *request: object) -> Any:
        """What the process answers."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def close(self) -> None:
        """End the process; what was forked and still runs is left to itself."""
        self._server.communicate()
        self._folder.cleanup()


class Fork:
    """A program that was started, used as `subprocess.Popen` is."""

    def __init__(self, forks: Forks, pid: int, said: Path) -> None:
        self.pid, self.returncode = pid, None
        self.out, self.errors = said.with_suffix(".out"), said.with_suffix(".errors")
        self._forks = forks

    def poll(self) -> int | None:
        """What it ended with, or None."""
        if self.returncode is None:
            self.returncode = self._forks.ask("poll", self.pid)
        return self.returncode

    def wait(self, timeout: float = 120) -> int:
        """Wait for its end."""
        begun = time.monotonic()
        while (code := self.poll()) is None:
            waited = time.monotonic() - begun
            if waited > timeout:
                raise subprocess.TimeoutExpired("a fork", timeout, self.out.read_bytes(), self.errors.read_bytes())
            time.sleep(min(0.005 + waited / 50, 0.2))
        return code

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """Wait for its end, and give what it said."""
        self.wait(timeout)
        return self.out.read_text(), self.errors.read_text()

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


@cache
def forks() -> Forks:
    """For programs that need no Spark."""
    found = Forks("midstream.cli.main", "midstream.embedded.job_run", "tests.embedded.crash_engine")
    atexit.register(found.close)
    return found


def run(program: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program that needs no Spark to its end."""
    started = forks().start(program, *arguments, **environment)
    out, errors = started.communicate()
    return subprocess.CompletedProcess([program, *map(str, arguments)], started.wait(), out, errors)


def main() -> None:
    """Answer each line of JSON: `start` with the process that was begun, `poll` with what it ended with or null."""
    for line in sys.stdin:
        kind, *rest = json.loads(line)
        if kind == "poll":
            done, status = os.waitpid(rest[0], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if done else None
        else:
            answer = os.fork()
            if not answer:
                _be(*rest)
        print(json.dumps(answer), flush=True)


def _be(
    program: str,
    arguments: Sequence[str],
    folder: str,
    variables: dict[str, str],
    first: tuple[str, Sequence[object]] | None,
    said: str,
) -> None:
    """Be the program, and never return."""
    code: object = 1
    try:
        for number, (name, mode) in enumerate(((os.devnull, "r"), (f"{said}.out", "a"), (f"{said}.errors", "a"))):
            with open(name, mode) as file:
                os.dup2(file.fileno(), number)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        if first is not None:
            module, _, name = first[0].partition(":")
            getattr(import_module(module), name)(*first[1])
        sys.argv = [program, *arguments]
        (runpy.run_path if program.endswith(".py") else runpy.run_module)(program, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    for module in sys.argv[1:]:
        import_module(module)
    main()
