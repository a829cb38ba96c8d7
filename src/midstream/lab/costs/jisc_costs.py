"""How many states are complete after a plan change (JISC §5.2, Equations 1 to 3, Propositions 1 to 3).

A left-deep plan of `n` joins over n + 1 streams exchanges the streams at positions I < J; the J - I states between them
are incomplete, C_n = n - (J - I) are complete. Near exchanges are likelier than far ones: Prob(I = i, J = j) is
proportional to 1 / (j - i).

The root's state counts among the n; it is always complete, for both plans have all streams at the root. The engine
keeps no state for the root, so of its n - 1 intermediate states J - I are missing.
"""

from __future__ import annotations

from math import log


def harmonic(n: int) -> float:
    """Compute the n-th harmonic number, H_n = 1 + 1/2 + ... + 1/n (§5.2).

    >>> harmonic(2)
    1.5
    """
    return sum(1 / r for r in range(1, n + 1))


def alpha(n: int) -> float:
    """Compute the factor that makes the probabilities sum to one, for n >= 2 (§5.2, Equation 2).

    alpha_n = 1 / (n H_n - n)

    >>> alpha(2)
    1.0
    """
    return 1 / (n * harmonic(n) - n)


def prob(i: int, j: int, n: int) -> float:
    """Compute the probability that the streams at positions i < j are exchanged (§5.2, Equation 1).

    >>> sum(prob(i, j, 5) for i in range(1, 6) for j in range(i + 1, 6)) - 1 < 1e-12
    True
    """
    return alpha(n) / (j - i)


def c(i: int, j: int, n: int) -> int:
    """Count the complete states after the streams at positions i < j were exchanged (§5.2, Equation 3: C_n).

    >>> c(i=2, j=3, n=20)
    19
    """
    return n - (j - i)


def mean_c(n: int) -> float:
    """Compute the expected number of complete states (§5.2, Proposition 1: E[C_n]).

    >>> mean_c(2)
    1.0
    """
    h = harmonic(n)
    return (2 * n * h - 3 * n + 1) / (2 * h - 2)


def var_c(n: int) -> float:
    """Compute the variance of the number of complete states (§5.2, Proposition 1: Var[C_n]).

    >>> abs(var_c(2)) < 1e-12
    True
    """
    h = harmonic(n)
    return (2 * n**2 * h - 5 * n**2 + 6 * n - 2 * h - 1) / (12 * (h - 1) ** 2)


def mean_c_asymptotic(n: int) -> float:
    """Compute the leading terms of E[C_n] (§5.2, Proposition 2): n - n / (2 ln n).

    The remainder is printed as O(1 / ln n); by the proof's own H_n = ln n + gamma + O(1/n) it is of the order n / ln² n
    and grows with n. Proposition 3 holds nevertheless, because n / ln² n is small against n.

    >>> round(mean_c_asymptotic(1000), 1)
    927.6
    """
    return n - n / (2 * log(n))


def var_c_asymptotic(n: int) -> float:
    """Compute the leading term of Var[C_n] (§5.2, Proposition 2): n² / (6 ln n), up to O(n² / ln² n).

    >>> round(var_c_asymptotic(1000))
    24127
    """
    return n**2 / (6 * log(n))


def concentration(n: int, epsilon: float) -> float:
    """Compute Chebyshev's bound on Prob(|C_n / E[C_n] - 1| > ε) (§5.2, Proposition 3).

    It goes to 0 as 1 / ln n.

    >>> concentration(100, 0.5) > concentration(10_000, 0.5)
    True
    """
    return min(1.0, var_c(n) / (epsilon * mean_c(n)) ** 2)
