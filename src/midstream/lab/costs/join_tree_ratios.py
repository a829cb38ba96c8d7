"""State-slice against the other two ways over a tree of joins, at every ratio of windows: Wang Equations 6.4 and 6.8.

With m = W_AB^1 / W_AB^2 and n = W_BC^2 / W_BC^1, all else as in Table 6.2 (`join_tree.scaled`). Equation 6.4 has the
states of pairs only, which make 99.9 % of the memory; Equation 6.8 is wrong as printed. `Ratios` has both from the
equations in full.
"""

from __future__ import annotations

from dataclasses import dataclass

from midstream.lab.costs.join_tree import JoinTree, isolated, pull_up, scaled, state_slice


@dataclass(frozen=True)
class Ratios:
    """What state-slice takes, over isolated execution and over pull-up, by Equations 6.1 to 6.3 and 6.5 to 6.7.

    >>> at = Ratios.at(m=1 / 60, n=1 / 2)
    >>> round(at.memory_over_isolated, 3), round(at.memory_over_pull_up, 3)
    (0.991, 0.356)
    >>> round(at.cpu_over_isolated, 3), round(at.cpu_over_pull_up, 3)
    (1.103, 0.236)
    """

    memory_over_isolated: float
    memory_over_pull_up: float
    cpu_over_isolated: float
    cpu_over_pull_up: float

    @classmethod
    def at(cls, m: float, n: float) -> Ratios:
        """Compute the ratios at windows in proportions m and n."""
        return cls.of(scaled(m, n))

    @classmethod
    def of(cls, t: JoinTree) -> Ratios:
        """Compute the ratios of any two queries of this form."""
        one, two, pulled, sliced = isolated(t, t.q_1), isolated(t, t.q_2), pull_up(t), state_slice(t)
        return cls(
            memory_over_isolated=sliced.c_m / (one.c_m + two.c_m),
            memory_over_pull_up=sliced.c_m / pulled.c_m,
            cpu_over_isolated=sliced.c_p / (one.c_p + two.c_p),
            cpu_over_pull_up=sliced.c_p / pulled.c_p,
        )


def memory_over_isolated(m: float, n: float) -> float:
    """Compute C_m^3 / C_m^1 (§6.3.4, Equation 6.4).

    >>> round(memory_over_isolated(m=1, n=1), 2)
    0.72
    """
    return (1500 * (m + n) - 840 * m * n) / (1500 * (m + n))


def memory_over_pull_up(m: float, n: float) -> float:
    """Compute C_m^3 / C_m^2 (§6.3.4, Equation 6.4).

    >>> memory_over_pull_up(m=1, n=1)
    1.0
    """
    return (1500 * (m + n) - 840 * m * n) / 2160


def cpu_over_isolated_as_printed(m: float, n: float) -> float:
    """Compute C_p^3 / C_p^1 as printed (§6.4.4, Equation 6.8), without the probes of AB3 ⋈ C3, 187.5 n (1 - m).

    The text calls just those probes the ones that dominate, two paragraphs above.

    >>> round(cpu_over_isolated_as_printed(m=1 / 60, n=1 / 2), 3)
    0.153
    """
    return _sliced_as_printed(m, n) / (187.5 * (m + n) + 0.125 * m + 0.125)


def cpu_over_pull_up_as_printed(m: float, n: float) -> float:
    """Compute C_p^3 / C_p^2 as printed (§6.4.4, Equation 6.8), with the same probes missing.

    >>> round(cpu_over_pull_up_as_printed(m=1 / 60, n=1 / 2), 3)
    0.033
    """
    return _sliced_as_printed(m, n) / 453.798


def _sliced_as_printed(m: float, n: float) -> float:
    return 228.61 * m * n + 206.33 * m + 18.75 * n + 0.1375
