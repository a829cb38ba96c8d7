"""Try midstream with other versions of its packages, each in a venv of its own: `python scripts/try_versions.py`.

Each venv has one package of another version, and all others from the environment that runs the script. In it run the
tests that `TRIALS` names. The script prints a line for each version, says whether `pyproject.toml` allows it, and ends
with 1 if an allowed version fails. `--only pyspark` tries one package, `--only pyspark==4.2.1` one version of it, and
`--out DIR` says where the venvs go.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent

LANGUAGE = ("tests/unit/sql", "tests/oracle")
STATE = (
    "tests/unit/state",
    "tests/unit/runtime",
    "tests/embedded/test_unlike_files.py",
    "tests/embedded/test_nested_values.py",
)
SPARK = ("-m", "verify or not verify", "tests/spark/test_readme.py", "tests/spark/test_results.py")


@dataclass(frozen=True)
class Trial:
    """Versions of a package, and the tests that show whether they hold."""

    package: str
    versions: tuple[str, ...]
    tests: tuple[str, ...]


TRIALS = (
    Trial("pyspark", ("4.0.5", "4.1.4", "4.2.1", "4.3.0"), SPARK),
    Trial("pandas", ("2.2.3", "2.3.3", "3.0.6", "3.1.1"), SPARK),
    Trial("sqlglot", ("30.0.3", "30.12.0", "30.20.0", "30.30.0"), LANGUAGE),
    Trial("pyarrow", ("18.1.0", "19.0.1", "20.0.0", "21.0.0", "26.0.1"), STATE),
)


def environment(package: str, version: str, out: Path) -> Path:
    """Make a venv whose packages are ours, except one; return its Python."""
    place = out / f"{package}-{version}"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=False, symlinks=True)
    own = next(place.glob("lib/python*/site-packages"))
    # Python reads no .pth file of a folder that a .pth file names, so an editable midstream is named as well.
    (own / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT / 'src'}\n")
    # Spark names the Py4J that it needs; all other packages stay ours.
    needs = [] if package == "pyspark" else ["--no-deps"]
    asked = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", *needs]
    subprocess.run([*asked, "--upgrade", "--target", str(own), f"{package}=={version}"], check=True)
    return python


def holds(python: Path, trial: Trial, log: Path) -> bool:
    """Run a trial's tests by a Python; what they print goes to a file."""
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    environ = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": str(python)}
    # What a newer package warns of is not a failure.
    command = [str(python), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "default", *trial.tests]
    with log.open("w") as file:
        done = subprocess.run(command, cwd=ROOT, env=environ, stdout=file, stderr=file, check=False)
    return done.returncode == 0


def allowed() -> dict[str, Requirement]:
    """Read the pins of pyproject.toml, by package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(one) for some in lists for one in some]
    return {one.name: one for one in found if str(one.specifier)}


def main() -> int:
    """Try all versions; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one package, or one version of it: pyspark==4.2.1")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "versions")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pins, wrong = allowed(), 0
    for trial in TRIALS:
        for version in trial.versions:
            if given.only not in (None, trial.package, f"{trial.package}=={version}"):
                continue
            log = given.out / f"{trial.package}-{version}.log"
            found = holds(environment(trial.package, version, given.out), trial, log)
            pinned = pins[trial.package].specifier.contains(version)
            wrong += pinned and not found
            print(
                f"{trial.package} {version}: {'holds' if found else f'fails, see {log}'}"
                f"{'' if pinned else ', and the pins leave it out'}",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
