import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.checkpoint import command_log
from midstream.checkpoint.command_log import BRINGING, CommandLog
from midstream.checkpoint.epochs import Holder
from midstream.checkpoint.folders import Folders
from midstream.checkpoint.reader import send
from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.commands.set_table import SetTable
from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.errors import CheckpointError, OtherFormatError, SinkError
from midstream.model.manifest import ChunkRef, Manifest
from midstream.storage import disk
from midstream.storage.local import LocalStorage
from midstream.storage.sweep import TABLES

COMMANDS: tuple[Command, ...] = (
    Migrate("q", "(A (B C))", "jisc", {"rate": 0.5, "note": "naïve 漢字"}),
    AddQuery("r", "SELECT 'a\n\"b' FROM A", None, {"format": "parquet"}),
    DropQuery("q"),
    Rescale(16),
)


@pytest.fixture
def log(tmp_path: Path) -> CommandLog:
    return CommandLog(tmp_path / "commands")


def test_nothing_yet(log: CommandLog) -> None:
    assert log.after(0) == ()
    assert not log.root.exists()


def test_commands_come_back_in_order(log: CommandLog) -> None:
    assert [log.append(command) for command in COMMANDS] == [1, 2, 3, 4]
    assert log.after(0) == tuple(enumerate(COMMANDS, 1))
    assert log.after(2) == ((3, COMMANDS[2]), (4, COMMANDS[3]))
    assert log.after(4) == () == log.after(99)
    assert CommandLog(log.root).append(DropQuery("s")) == 5
    assert not [path for path in log.root.iterdir() if path.suffix == ".tmp"]


def test_a_withdrawn_command_is_passed_over(log: CommandLog) -> None:
    for command in COMMANDS:
        log.append(command)
    (log.root / "000000002.json").unlink()
    assert [number for number, _ in log.after(0)] == [1, 3, 4]
    assert log.append(DropQuery("s")) == 5


def test_other_files_do_not_count(log: CommandLog) -> None:
    log.append(COMMANDS[0])
    (log.root / ".000000002.json.ab-1-2.tmp").write_text("half")
    (log.root / "notes.json").write_text("the user's own")
    assert log.after(0) == ((1, COMMANDS[0]),)
    assert log.append(COMMANDS[1]) == 2


def test_no_number_is_given_again_that_a_step_has_taken(log: CommandLog) -> None:
    """Also where its file is gone: the job would never look at the new command."""
    taken = log.append(COMMANDS[0])
    (log.root / "000000001.json").unlink()
    manifest = Manifest(job="j", step=0, last_command=taken)
    number, command = send(manifest, Folders(str(log.root.parent)), Rescale(2))
    assert log.after(manifest.last_command) == ((number, command),)
    assert send(manifest, Folders(str(log.root.parent)), Rescale(3))[0] == number + 1


def test_a_listing_that_misses_a_file_loses_no_command(log: CommandLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in COMMANDS:
        log.append(command)
    monkeypatch.setattr(LocalStorage, "names", lambda *_: ["000000004.json", "000000001.json"])
    assert log.after(1) == tuple(enumerate(COMMANDS, 1))[1:]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        disk.seal(encode(COMMANDS[0]))[:-5],
        disk.seal({"command": "explode"}),
        disk.seal({"command": "rescale"}),
        disk.seal({"command": "optimize", "settings": ["abc"]}),
        disk.seal({"command": "rescale", "lanes": 2, "colour": "red"}),
        disk.seal([]),
        disk.seal({}),
    ],
)
def test_a_damaged_command(log: CommandLog, content: bytes) -> None:
    log.append(COMMANDS[0])
    log.append(COMMANDS[1])
    (log.root / "000000002.json").write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        log.after(0)
    assert caught.value.remedy
    assert caught.value.place
    assert log.after(2) == ()


def test_any_flipped_byte_is_found(log: CommandLog) -> None:
    log.append(COMMANDS[0])
    path = log.root / "000000001.json"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x02]) + whole[at + 1 :])
        with pytest.raises(CheckpointError, match=r"000000001\.json"):
            log.after(0)


def test_another_format(log: CommandLog) -> None:
    log.append(COMMANDS[0])
    path = log.root / "000000001.json"
    path.write_bytes(path.read_bytes().replace(b'"format":1,', b'"format":2,'))
    with pytest.raises(OtherFormatError, match=r"format 2 of midstream 0\.2\.0.*Remedy"):
        log.after(0)


def test_a_path_under_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = CommandLog(tmp_path / "file" / "child")
    with pytest.raises((SinkError, CheckpointError), match="Remedy"):
        log.append(COMMANDS[0])
    with pytest.raises(CheckpointError, match="Remedy"):
        log.after(0)


def test_a_file_system_without_links(log: CommandLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(SinkError, match="Operation not permitted"):
        log.append(COMMANDS[0])
    assert list(log.root.iterdir()) == []


def test_durable(log: CommandLog, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(disk.os, "fsync", synced.append)
    log.append(COMMANDS[0])
    assert synced == []
    CommandLog(LocalStorage(log.root, durable=True)).append(COMMANDS[0])
    assert len(synced) == 2


APPENDER = """
import sys
from midstream.commands.drop_query import DropQuery
from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.folders import Folders
from midstream.checkpoint.reader import send
log, name = CommandLog(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    print(log.append(DropQuery(f"{name}-{number}")))
"""


def test_four_processes_append_at_once(log: CommandLog) -> None:
    source = str(Path(command_log.__file__).parents[2])
    appenders = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDER, str(log.root), name],
            env={**os.environ, "PYTHONPATH": source},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "abcd"
    ]
    for appender in appenders:
        assert appender.stdout is not None
        assert appender.stdout.readline() == "ready\n"
    for appender in appenders:
        assert appender.stdin is not None
        appender.stdin.write("go\n")
        appender.stdin.flush()
    followed: list[tuple[int, Command]] = []
    while any(appender.poll() is None for appender in appenders):
        followed.extend(log.after(followed[-1][0] if followed else 0))
    followed.extend(log.after(followed[-1][0]))
    given = {
        name: list(map(int, appender.communicate()[0].split()))
        for name, appender in zip("abcd", appenders, strict=True)
    }
    assert sorted(number for numbers in given.values() for number in numbers) == list(range(1, 401))
    assert all(numbers == sorted(numbers) for numbers in given.values())
    assert [number for number, _ in followed] == list(range(1, 401))
    said = {(number, DropQuery(f"{name}-{at}")) for name in given for at, number in enumerate(given[name])}
    assert set(followed) == said
    assert len(list(log.root.iterdir())) == 400


def test_commands_of_long_ago_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_log, "COMMANDS_KEPT", 3)
    log = CommandLog(tmp_path)
    for number in range(1, 11):
        assert log.append(DropQuery(f"q{number}")) == number
    log.tidy(8)
    assert [number for number, _ in log.after(5)] == [6, 7, 8, 9, 10] and not (tmp_path / "000000005.json").exists()
    log.tidy(10)
    assert log.append(DropQuery("later")) == 11, "no number is given twice"
    assert [number for number, _ in log.after(7)] == [8, 9, 10, 11]


def table(step: int, name: str = "rates") -> SetTable:
    return SetTable(name, pa.schema([("k", pa.int64())]), ChunkRef(f"{TABLES}/{name}/{step:08d}-x", 1, 1, 1), "x")


def test_the_chunks_that_commands_bring_are_known_unless_others_may_come(log: CommandLog) -> None:
    assert log.brought(0) == set()
    with log.bringing():
        assert log.brought(0) is None
        log.append(table(1))
        log.append(COMMANDS[0])
        assert log.brought(0) is None and log.numbers()
    log.append(table(2))
    assert log.brought(0) == {*table(1).chunks, *table(2).chunks}
    assert log.brought(1) == log.brought(2) == set(table(2).chunks)
    (log.root / "000000003.json").unlink()
    assert log.brought(0) == set(table(1).chunks)
    (log.root / "000000004.json").write_text("damaged")
    assert log.brought(0) is None and log.brought(4) == set()


BRINGS = """
import os, signal, sys
from midstream.checkpoint.command_log import CommandLog
with CommandLog(sys.argv[1]).bringing():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Holder.here().boot, reason="nobody can see here whether a process has ended")
def test_who_was_killed_while_it_brought_chunks_brings_none(log: CommandLog) -> None:
    subprocess.run([sys.executable, "-c", BRINGS, str(log.root)], check=False)
    assert [holder is not None and holder.is_gone for holder in log.bringers().values()] == [True]
    assert log.brought(0) == set()
    (log.root / f"x{BRINGING}").write_text("half")
    assert log.brought(0) is None
