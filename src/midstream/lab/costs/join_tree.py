"""Two queries over the tree (A ⋈ B) ⋈ C with windows per level: Wang ch. 6 (Equations 6.1 to 6.3, 6.5 to 6.7).

Q_1 has the smaller window at the lower join and the larger one at the upper, Q_2 the other way round. The filters of
one stream overlap. Push-down is left out, as in the text: it would partition the streams exponentially.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from midstream.lab.costs.cost_terms import Cost


@dataclass(frozen=True)
class TreeQuery:
    """A query's terms of Table 6.1: windows W_AB, W_BC and the selectivities of sigma_A, sigma_B, sigma_C."""

    w_ab: float
    w_bc: float
    s_a: float = 0.25
    s_b: float = 0.25
    s_c: float = 0.25


@dataclass(frozen=True)
class JoinTree:
    """The terms of Table 6.1 with the values of Table 6.2, which have lambda in tuples a minute and M_t in KB.

    >>> round(JoinTree().s_a_union, 3)
    0.3
    """

    q_1: TreeQuery = field(default_factory=lambda: TreeQuery(w_ab=1, w_bc=30))
    q_2: TreeQuery = field(default_factory=lambda: TreeQuery(w_ab=60, w_bc=15))
    lambda_a: float = 1000
    lambda_b: float = 1000
    lambda_c: float = 1000
    s_ab: float = 0.1
    s_bc: float = 0.1
    m_t: float = 0.1
    overlap: float = 0.8

    def __post_init__(self) -> None:
        if self.q_1.w_ab > self.q_2.w_ab or self.q_2.w_bc > self.q_1.w_bc:
            raise ValueError("the model needs W_AB^1 <= W_AB^2 and W_BC^2 <= W_BC^1 (§6.2.1)")

    @property
    def s_a_union(self) -> float:
        """Selectivity of the filters on A together (§6.3.2, for sigma_A^1 or sigma_A^2)."""
        return self.q_1.s_a + self.q_2.s_a - self.overlap * self.q_1.s_a

    @property
    def s_b_union(self) -> float:
        """Selectivity of the filters on B together (§6.3.2, for sigma_B^1 or sigma_B^2)."""
        return self.q_1.s_b + self.q_2.s_b - self.overlap * self.q_1.s_b

    @property
    def s_c_union(self) -> float:
        """Selectivity of the filters on C together (§6.3.2, for sigma_C^1 or sigma_C^2)."""
        return self.q_1.s_c + self.q_2.s_c - self.overlap * self.q_1.s_c


def scaled(m: float, n: float) -> JoinTree:
    """Scale Table 6.2 to m = W_AB^1 / W_AB^2 and n = W_BC^2 / W_BC^1 (§6.3.4).

    The text has W_BC^1 = n·30 and W_BC^2 = 60, of which n is not the ratio; W_BC^1 = 30 and W_BC^2 = n·30 are meant, as
    Table 6.2 (n = 1/2) and Equations 6.4 and 6.8 have it.

    >>> scaled(m=1 / 60, n=1 / 2) == JoinTree()
    True
    """
    return JoinTree(TreeQuery(w_ab=60 * m, w_bc=30), TreeQuery(w_ab=60, w_bc=30 * n))


def isolated(t: JoinTree, q: TreeQuery) -> Cost:
    """Compute the cost of one query by itself (§6.3.1, Equation 6.1; §6.4.1, Equation 6.5).

    >>> round(isolated(JoinTree(), JoinTree().q_1).c_m)
    75800
    """
    a, b, c = t.lambda_a * q.s_a, t.lambda_b * q.s_b, t.lambda_c * q.s_c
    ab = 2 * a * b * q.w_ab * t.s_ab
    return Cost(
        memory={
            "A": a * q.w_ab * t.m_t,
            "B": b * q.w_ab * t.m_t,
            "C": c * q.w_bc * t.m_t,
            "AB": ab * q.w_bc * 2 * t.m_t,
        },
        cpu={
            "filter": t.lambda_a + t.lambda_b + t.lambda_c,
            "purge": a + b + c + ab,
            "probe AB": ab / t.s_ab,
            "probe ABC": 2 * ab * c * q.w_bc,
        },
    )


def pull_up(t: JoinTree) -> Cost:
    """Compute the cost of one tree with the larger windows, filters above it and a router (§6.3.2, 6.2; §6.4.2, 6.6).

    The streams are filtered by the disjunction first. Equation 6.6 counts one comparison for it, where §6.4 has one per
    primary predicate and Equation 6.7 counts two.

    >>> round(pull_up(JoinTree()).c_m)
    6484500
    """
    a, b, c = t.lambda_a * t.s_a_union, t.lambda_b * t.s_b_union, t.lambda_c * t.s_c_union
    ab = 2 * a * b * t.q_2.w_ab * t.s_ab
    abc = 2 * ab * c * t.q_1.w_bc * t.s_bc
    return Cost(
        memory={
            "A": a * t.q_2.w_ab * t.m_t,
            "B": b * t.q_2.w_ab * t.m_t,
            "C": c * t.q_1.w_bc * t.m_t,
            "AB": ab * t.q_1.w_bc * 2 * t.m_t,
        },
        cpu={
            "filter": t.lambda_a + t.lambda_b + t.lambda_c,
            "filter results": 2 * abc,
            "purge": a + b + c + ab,
            "probe AB": ab / t.s_ab,
            "probe ABC": abc / t.s_bc,
            "route": 2 * abc,
        },
    )


def state_slice(t: JoinTree) -> Cost:
    """Compute the cost of three chains: A ⋈ B in two slices, each joined with C in slices (§6.3.3, 6.3; §6.4.3, 6.7).

    Two things are the text's and not the engine's: C is held twice where the upper chains overlap (C1 and C3), and the
    union is paid per result, though §5.3 shows that it costs by the punctuations alone.

    >>> round(state_slice(JoinTree()).c_m)
    2308210
    """
    a, b, c = t.lambda_a * t.s_a_union, t.lambda_b * t.s_b_union, t.lambda_c * t.s_c_union
    (a_1, b_1, c_1), (a_2, b_2, c_2) = (
        (t.lambda_a * q.s_a, t.lambda_b * q.s_b, t.lambda_c * q.s_c) for q in (t.q_1, t.q_2)
    )
    low, low_rest = t.q_1.w_ab, t.q_2.w_ab - t.q_1.w_ab
    high, high_rest = t.q_2.w_bc, t.q_1.w_bc - t.q_2.w_bc
    # Rates of pairs: from the first slice of A ⋈ B, what of them Q_1 selects, from the second slice.
    ab_1, ab_1_of_q_1, ab_2 = (
        2 * x * y * w * t.s_ab for x, y, w in ((a, b, low), (a_1, b_1, low), (a_2, b_2, low_rest))
    )
    abc_1 = 2 * ab_1 * c * high * t.s_bc
    abc_2 = 2 * ab_1_of_q_1 * c_1 * high_rest * t.s_bc
    abc_3 = 2 * ab_2 * c_2 * high * t.s_bc
    return Cost(
        memory={
            "A1": a * low * t.m_t,
            "A2": a_2 * low_rest * t.m_t,
            "B1": b * low * t.m_t,
            "B2": b_2 * low_rest * t.m_t,
            "C1": c * high * t.m_t,
            "C2": c_1 * high_rest * t.m_t,
            "C3": c_2 * high * t.m_t,
            "AB1": ab_1 * high * 2 * t.m_t,
            "AB2": ab_1_of_q_1 * high_rest * 2 * t.m_t,
            "AB3": ab_2 * high * 2 * t.m_t,
        },
        cpu={
            "filter": 2 * t.lambda_a + 2 * t.lambda_b + 3 * t.lambda_c,
            "filter pairs": ab_1,
            "filter results": 2 * abc_1,
            "purge": 2 * a + 2 * b + 3 * c + 2 * ab_1 + ab_2,
            "probe AB1": ab_1 / t.s_ab,
            "probe AB2": ab_2 / t.s_ab,
            "probe ABC1": abc_1 / t.s_bc,
            "probe ABC2": abc_2 / t.s_bc,
            "probe ABC3": abc_3 / t.s_bc,
            "union": 2 * abc_1 + abc_2 + abc_3,
        },
    )


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
