"""numpy sorts without AVX-512 where that is slow, and only there; whoever has said what it shall not use is heeded."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from midstream.pipeline.processor import DISABLED, avx512, sorts_slowly_by_avx512

CPUINFO = Path("/proc/cpuinfo")
NAME = avx512(version("numpy"))
SAY = f"import midstream, numpy; print(numpy._core._multiarray_umath.__cpu_features__[{NAME!r}])"


def said(**environment: str) -> str:
    """What a new process says of AVX-512 in numpy, once midstream is loaded."""
    known = {name: value for name, value in os.environ.items() if name != DISABLED}
    done = subprocess.run([sys.executable, "-c", SAY], env=known | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not CPUINFO.exists(), reason="nothing says what processor this is")
def test_numpy_goes_without_avx512_where_it_sorts_slowly_by_it() -> None:
    slow = sorts_slowly_by_avx512(CPUINFO.read_text())
    has_it = " avx512f" in CPUINFO.read_text()
    assert said() == str(has_it and not slow)
    assert said(**{DISABLED: "AVX512_SPR"}) == str(has_it)


def test_importing_the_package_leaves_the_environment_as_it_was() -> None:
    program = "import os; before = dict(os.environ); import midstream.cli.main; assert os.environ == before"
    known = {name: value for name, value in os.environ.items() if name != DISABLED}
    subprocess.run([sys.executable, "-c", program], env=known, check=True)
    subprocess.run([sys.executable, "-c", program], env=known | {DISABLED: ""}, check=True)


@pytest.mark.parametrize("text", ["", "\n\n", "vendor_id\t: AuthenticAMD\n", "processor\t: 0\nBogoMIPS\t: 50.00\n"])
def test_a_processor_of_which_less_is_known_is_left_alone(text: str) -> None:
    assert not sorts_slowly_by_avx512(text)
