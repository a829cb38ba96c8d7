"""A standalone Spark cluster of processes: a master, and workers that share nothing but the network.

Each worker is a machine of its own as far as one machine can give that: its own folder for work and cache, and, where
mounting is allowed, a view of the disk in which the folders of the driver and of the other workers are empty.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.object_server import free_port
from tests.spark.processes import children

HOME = Path(pyspark.__file__).parent
CLASS = "org.apache.spark.deploy"
EXECUTOR = "CoarseGrainedExecutorBackend"


def can_hide() -> bool:
    """Whether a process may be given a view of the disk of its own."""
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    with suppress(OSError):
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    return False


@dataclass
class Machine:
    """A worker."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def worker(self) -> int:
        """The process of the worker."""
        return self.process.pid

    def executors(self) -> list[int]:
        """The executors that run on it."""
        return children([self.worker()], EXECUTOR)

    def kill(self) -> None:
        """As when the power of the machine fails."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def decommission(self) -> None:
        """As a cloud does that takes a machine back: it may end what it does, and gets nothing new."""
        os.kill(self.worker(), signal.SIGPWR)


@dataclass
class Cluster:
    """A master and its workers; each has one core."""

    root: Path
    environment: Mapping[str, str]
    hidden: Sequence[Path] = ()
    port: int = field(default_factory=free_port)
    machines: list[Machine] = field(default_factory=list)
    master: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self, workers: int) -> None:
        self.root.mkdir(parents=True)
        arguments = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"]
        self.master = self._begin("master", f"{CLASS}.master.Master", arguments, self.root, {})
        for _ in range(600):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.port)):
                    break
            assert self.master.poll() is None, self.said()
            time.sleep(0.05)
        for _ in range(workers):
            self.add()

    def add(self) -> Machine:
        """One more worker."""
        folder = self.root / f"machine{len(self.machines)}"
        folder.mkdir()
        arguments = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        arguments += ["--work-dir", str(folder / "work"), self.url]
        own = {
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "MIDSTREAM_CACHE": str(folder / "cache"),
            "SPARK_WORKER_OPTS": "-Dspark.decommission.enabled=true",
        }
        others = [*self.hidden, *(machine.folder for machine in self.machines)]
        process = self._begin(folder.name, f"{CLASS}.worker.Worker", arguments, folder, own, others)
        self.machines.append(Machine(folder, process))
        return self.machines[-1]

    def stop(self) -> None:
        for machine in self.machines:
            machine.kill()
        if self.master is not None:
            self.master.kill()
            self.master.wait()

    def said(self) -> str:
        """The ends of all logs."""
        return "\n".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in sorted(self.root.glob("*.log")))

    def _begin(
        self,
        name: str,
        main: str,
        arguments: Sequence[str],
        folder: Path,
        own: Mapping[str, str],
        others: Sequence[Path] = (),
    ) -> subprocess.Popen[bytes]:
        command = [str(HOME / "bin" / "spark-class"), main, *arguments]
        if others and can_hide():
            mounts = "".join(f"mount -t tmpfs tmpfs {shlex.quote(str(other))}; " for other in others)
            command = ["unshare", "--mount", "sh", "-ec", f'{mounts} exec "$@"', "machine", *command]
        environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", **self.environment, **own}
        environment.pop("PYTHONPATH", None)
        with open(self.root / f"{name}.log", "wb") as log:
            return subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
