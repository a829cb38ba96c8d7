"""The workload of Wang's experiments (§8.1, Tables 8.1 and 8.2): two Poisson streams, queries that join them alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midstream.embedded.stream_generator import GeneratedStream

RATES = (20.0, 40.0, 60.0, 80.0)
"""Input rates of each stream, rows a second."""

RUN = 90.0
"""How long the stream generator runs, in seconds."""

THREE: Mapping[str, tuple[float, ...]] = {
    "Mostly-Small": (5, 10, 30),
    "Uniform": (10, 20, 30),
    "Mostly-Large": (20, 25, 30),
}
"""The windows of Table 8.1, in seconds."""

S_SIGMA = (0.2, 0.5, 0.8)
"""The selectivities of the filter of Table 8.1."""

PARTS = 1_000
"""Values are whole numbers below it: selectivities are thousandths."""


@dataclass(frozen=True)
class WangSetting:
    """Q_1 without a filter, the others with the same one on A; the windows ascend.

    `pace` is how long a second of the paper takes here: windows and the run are so many times as long.

    >>> WangSetting((5, 30), rate=20, s_sigma=0.5, s_join=0.1).queries(500)["q2"].partition(" WHERE ")[2]
    '(A.u + B.u) % 1000 < 100 AND A.v < 500'
    """

    windows: tuple[float, ...]
    rate: float
    s_sigma: float
    s_join: float
    pace: float = 1.0
    run: float = RUN

    @property
    def sources(self) -> tuple[GeneratedStream, ...]:
        """The streams; both columns are uniform."""
        return tuple(GeneratedStream(name, self.rate, {"u": PARTS, "v": PARTS}) for name in "AB")

    @property
    def until(self) -> float:
        """The end of the run in seconds."""
        return self.run * self.pace

    @property
    def filtered(self) -> int:
        """The number of queries that have the filter."""
        return len(self.windows) - 1 if self.s_sigma < 1 else 0

    def queries(self, bound: int) -> dict[str, str]:
        """Write the queries by name, in order of window; rows of A pass the filter if v is below the bound."""
        # A sum modulo of uniform numbers is uniform whatever one of them is: every pair is as likely to join.
        join = f"(A.u + B.u) % {PARTS} < {round(self.s_join * PARTS)}"
        keep = f" AND A.v < {bound}" if self.filtered else ""
        found = {}
        for number, window in enumerate(self.windows, 1):
            size = f"RANGE {round(window * self.pace * 1_000)} MILLISECONDS"
            where = join + (keep if number > 1 else "")
            found[f"q{number}"] = f"SELECT A.u AS u FROM A [{size}], B [{size}] WHERE {where}"
        return found


def small_large(queries: int) -> tuple[float, ...]:
    """List the windows of Small-Large (Table 8.2): one half evenly up to 6 s, the other from 24 s to 30 s.

    >>> small_large(12)
    (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0)
    """
    half = queries // 2
    steps = [6 * (at + 1) / half for at in range(half)]
    return (*steps, *(24 + step for step in steps))
