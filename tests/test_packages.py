"""The wheel and the sdist hold what they must; the embedded engine runs where only what it declares is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from importlib.metadata import Distribution, distribution
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

import midstream as ms

ROOT = Path(__file__).resolve().parent.parent
ONLY_IN_THE_REPOSITORY = {
    ".ci/run",
    ".gitignore",
    ".pre-commit-config.yaml",
    ".github/ISSUE_TEMPLATE/fault.md",
    ".github/ISSUE_TEMPLATE/wrong_answer.md",
    ".github/workflows/checks.yml",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both packages; the wheel is made from the sdist, as an installer would."""
    out = tmp_path_factory.mktemp("dist")
    # Without the backend at hand, one is fetched into an environment of its own.
    at_hand = ["--no-isolation"] if find_spec("hatchling") else []
    command = [sys.executable, "-m", "build", *at_hand, "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist(built: Path) -> Path:
    (found,) = built.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment that has the wheel and the closure of what it declares, and nothing else.

    The libraries are this environment's own, linked; pip resolves the wheel's requirements against them alone.
    """
    home = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    for name in needed(metadata(wheel).get_all("Requires-Dist", [])):
        for entry in top_level(distribution(name)):
            if not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    found = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(found), "install", "--quiet", "--no-index"]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return found


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def needed(requirements: list[str]) -> set[str]:
    """What these requirements bring, by the metadata of what is installed here."""
    found = set[str]()
    waiting = [(text, "") for text in requirements]
    while waiting:
        text, extra = waiting.pop()
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name not in found:
            found.add(requirement.name)
            for one in {"", *requirement.extras}:
                waiting += [(further, one) for further in distribution(requirement.name).requires or ()]
    return found


def top_level(package: Distribution) -> Iterator[Path]:
    """The files and folders that a distribution has right in site-packages."""
    site = Path(str(package.locate_file(""))).resolve()
    names = {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}
    return (site / name for name in sorted(names))


def run(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    # Nothing of this repository may be found by accident.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(python), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60
    )


def midstream(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(python, str(python.parent / "midstream"), *arguments, cwd=cwd)


def tracked(*folders: str) -> set[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("what belongs to the project is asked of git")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}


def test_the_wheel_has_every_file_of_the_package_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    files = {name.removeprefix("src/") for name in tracked("src/midstream")}
    assert "midstream/py.typed" in files and files - names == set()
    beside = {"midstream_cli.py", f"midstream-{ms.__version__}.dist-info"}
    assert {name.split("/")[0] for name in names - files} == beside
    assert f"midstream-{ms.__version__}.dist-info/licenses/LICENSE" in names


def test_the_sdist_has_every_file_of_the_repository(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked() - names - ONLY_IN_THE_REPOSITORY == set()


def test_the_sdist_runs_its_tests(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    some = ["tests/docs/test_links.py", "tests/unit/model/test_events.py", "src/midstream/sql"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *some]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_is_said_in_one_place(wheel: Path, python: Path, tmp_path: Path) -> None:
    assert metadata(wheel)["Version"] == ms.__version__
    assert midstream(python, "--version", cwd=tmp_path).stdout == f"midstream {ms.__version__}\n"
    assert ms.__version__ not in (ROOT / "pyproject.toml").read_text()


def test_the_newest_notes_are_of_this_version() -> None:
    headings = re.findall(r"^## (\d\S*), (.+)$", (ROOT / "docs" / "changelog.md").read_text(), re.MULTILINE)
    version, _, unfinished = ms.__version__.partition(".dev")
    assert headings[0][0] == version
    assert (headings[0][1] == "not released yet") == bool(unfinished)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d|not released yet", when) for _, when in headings)


def of_spark(marker: Marker) -> bool:
    return marker.evaluate({"extra": "spark"}) and not marker.evaluate({"extra": ""})


def test_spark_and_pandas_come_with_an_extra(wheel: Path) -> None:
    requirements = [Requirement(text) for text in metadata(wheel).get_all("Requires-Dist", [])]
    plain = {one.name for one in requirements if one.marker is None}
    spark = {one.name: f"{one.specifier}" for one in requirements if one.marker and of_spark(one.marker)}
    assert plain == {"numpy", "pyarrow", "rich", "sqlglot", "typer", "typing-extensions"}
    assert set(spark) == {"pyspark", "pandas"} and "<3" in spark["pandas"]


def test_the_quickstart_runs_where_nothing_else_is_installed(python: Path, tmp_path: Path) -> None:
    done = run(python, str(ROOT / "examples" / "quickstart.py"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "comparisons" in done.stdout
    absent = "import importlib.util as u; print([n for n in ('pyspark', 'py4j', 'pandas', 'duckdb') if u.find_spec(n)])"
    assert run(python, "-c", absent, cwd=tmp_path).stdout == "[]\n"


def test_help_is_given_for_every_command(python: Path, tmp_path: Path) -> None:
    done = midstream(python, "--help", cwd=tmp_path)
    assert done.returncode == 0 and "migrate" in done.stdout


def job_file(folder: Path) -> Path:
    """A small job of files."""
    for stream in ("A", "B"):
        (folder / stream).mkdir()
        rows = {"k": pa.array([1, 2]), "ts": pa.array([0, 10**6], pa.timestamp("us"))}
        parquet.write_table(pa.table(rows), folder / stream / "0.parquet")
    streams = "".join(
        f'[streams.{name}]\nformat = "parquet"\npath = "{name}"\nschema = "k BIGINT, ts TIMESTAMP"\ntimestamp = "ts"\n'
        for name in ("A", "B")
    )
    query = 'sql = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS"\nsink = { path = "out" }\n'
    file = folder / "job.toml"
    file.write_text(f'checkpoint = "ckpt"\n{streams}[queries.pairs]\n{query}')
    return file


def test_a_job_runs_embedded_and_what_needs_spark_says_what_to_install(python: Path, tmp_path: Path) -> None:
    file = job_file(tmp_path)
    done = midstream(python, "run", file.name, "--once", "--engine", "embedded", cwd=tmp_path)
    assert (done.returncode, "pairs: 2 rows" in done.stdout) == (0, True), done.stdout + done.stderr
    done = midstream(python, "status", "ckpt", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file.write_text(file.read_text().replace('"ckpt"', '"other"'))
    done = midstream(python, "run", file.name, "--once", cwd=tmp_path)
    assert done.returncode == 1
    assert "No module named 'pyspark'" in done.stderr and "pip install '.[spark]'" in done.stderr
    assert "or run the job with --engine embedded" in done.stderr


@pytest.mark.parametrize("name", ["Job", "results_stream"])
def test_what_needs_spark_says_so_in_a_program(python: Path, tmp_path: Path, name: str) -> None:
    program = f"import midstream as ms\ntry:\n    ms.{name}\nexcept ms.MidstreamError as error:\n    print(error)"
    done = run(python, "-c", program, cwd=tmp_path)
    remedy = "in a clone of midstream, pip install '.[spark]'"
    assert done.stdout == f"No module named 'pyspark' (at midstream.{name}). Remedy: {remedy}\n"
