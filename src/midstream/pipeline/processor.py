r"""Load numpy without the instructions that sort slowly on this processor, unless numpy is loaded already.

numpy sorts by AVX-512 wherever a processor has it. AMD's Zen 4 has it, but stores some words of a vector by microcode,
and that sort does little else: 2.4 million words take 138 ms there, and 28 ms by AVX2 (numpy/x86-simd-sort, issue 6). A
third of a large step is sorting.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

DISABLED = "NPY_DISABLE_CPU_FEATURES"
"""The environment variable in which numpy looks, once, when it is loaded."""

_ZEN_3_AND_4 = "AuthenticAMD", "25"


def sorts_slowly_by_avx512(cpuinfo: str) -> bool:
    r"""Tell from what Linux says of a processor whether it sorts slowly by AVX-512.

    >>> sorts_slowly_by_avx512("vendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: fpu avx2 avx512f\n\n")
    True
    >>> sorts_slowly_by_avx512("vendor_id\t: GenuineIntel\ncpu family\t: 6\nflags\t\t: fpu avx2 avx512f\n\n")
    False
    """
    known = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", cpuinfo.partition("\n\n")[0], re.MULTILINE))
    family = known.get("vendor_id"), known.get("cpu family")
    return family == _ZEN_3_AND_4 and "avx512f" in known.get("flags", "").split()


def avx512(numpy_version: str) -> str:
    """Return numpy's name of what its sort by AVX-512 needs.

    >>> avx512("2.3.5"), avx512("2.4.0")
    ('AVX512_SKX', 'X86_V4')
    """
    major, minor = map(int, numpy_version.split(".")[:2])
    return "X86_V4" if (major, minor) >= (2, 4) else "AVX512_SKX"


def numpy_settings() -> dict[str, str]:
    """Return the environment that numpy is to be loaded with here; empty if the user has set `DISABLED`."""
    # Without /proc nothing is known of the processor; a frozen program may have no metadata of its packages.
    with suppress(OSError, PackageNotFoundError):
        if DISABLED not in os.environ and sorts_slowly_by_avx512(Path("/proc/cpuinfo").read_text()):
            return {DISABLED: avx512(version("numpy"))}
    return {}


def _load_numpy() -> None:
    settings = numpy_settings()
    os.environ.update(settings)
    try:
        import numpy  # noqa: F401
    finally:
        # The environment is the program's: what it starts later must find it unchanged.
        for name in settings:
            del os.environ[name]


_load_numpy()
