"""What moving state and parallel track cost (Zhu §5, Equations 1 to 8, Table 1).

The models take nested-loop joins, one global window `w`, steady rates and a system that keeps up. `n` and `m` are the
operators of the old and the new box, `lambda_x` the rate of an input, `sigma_xy` the reduction factor of a join, `s_x`
the tuples of a state; `t_m`, `t_c`, `t_j`, `t_s` the time to compare two strings, to create a cursor, to join a pair
and to insert a tuple.

Equations 6, 7 and 8 are wrong as printed. The functions give what the text's own derivation leads to; what is printed
is kept beside them under the name `..._as_printed`, so that the difference can be measured.
"""

from __future__ import annotations


def t_match(n: float, m: float, t_m: float) -> float:
    """Compute the time to match the states of both boxes, two to an operator, each with each (§5.1: T_match).

    >>> t_match(n=3, m=3, t_m=1)
    36
    """
    return 4 * n * m * t_m


def t_move(n: float, m: float, t_c: float) -> float:
    """Compute the time to share the matching states; at most the smaller box's states match (§5.1: T_move).

    >>> t_move(n=3, m=2, t_c=1)
    4
    """
    return 2 * min(n, m) * t_c


def state_size(lambda_a: float, w: float) -> float:
    """Count the tuples of a state over one input (§5.1: |S_A| = lambda_A W).

    >>> state_size(lambda_a=10, w=2)
    20
    """
    return lambda_a * w


def joined_state_size(lambda_a: float, lambda_b: float, w: float, sigma_ab: float) -> float:
    """Count the tuples of the state S_AB (§5.1: what Equation 1 inserts, |S_A||S_B| sigma_AB).

    A combined tuple is purged with its oldest component (§2.2), so it lives for less than W after it was made: the size
    is not lambda_AB W, which is twice as much.

    >>> joined_state_size(lambda_a=10, lambda_b=10, w=2, sigma_ab=0.1)
    40.0
    """
    return state_size(lambda_a, w) * state_size(lambda_b, w) * sigma_ab


def t_s_ab(lambda_a: float, lambda_b: float, w: float, t_j: float, t_s: float, sigma_ab: float) -> float:
    """Compute the time to recompute the state S_AB from S_A and S_B (§5.1, Equation 1).

    >>> t_s_ab(lambda_a=10, lambda_b=10, w=2, t_j=1, t_s=0, sigma_ab=0.1)
    400.0
    """
    return lambda_a * lambda_b * w**2 * (t_j + t_s * sigma_ab)


def lambda_ab(lambda_a: float, lambda_b: float, w: float, sigma_ab: float) -> float:
    """Compute the output rate of a join whose states are full (§5.1, Equation 2).

    >>> lambda_ab(lambda_a=10, lambda_b=10, w=2, sigma_ab=0.1)
    40.0
    """
    return lambda_a * state_size(lambda_b, w) * sigma_ab + lambda_b * state_size(lambda_a, w) * sigma_ab


def t_ms(t_match: float, t_move: float, t_s: float) -> float:
    """Add up a migration by moving state: match, move, recompute all unmatched states (§5.1, Equation 3).

    >>> t_ms(t_match=36, t_move=4, t_s=400)
    440
    """
    return t_match + t_move + t_s


def t_pt(w: float, h: int) -> float:
    """Compute the length of a migration by parallel track over an old box of height h (§5.2, Equation 4).

    The 2W follow from the purge rule of Lemma 2.2; under max ordering W is enough at any height (HybMig §3.5).

    >>> t_pt(w=20, h=1), t_pt(w=20, h=3)
    (20, 40)
    """
    return w if h == 1 else 2 * w


def t_ab(lambda_a: float, lambda_b: float, w: float, t_j: float, t_s: float) -> float:
    """Compute the time of an old box's join for 2W of new tuples: purge, insert, join (§5.2, Equation 5).

    A new tuple of A purges lambda_b/lambda_a tuples of B, so lambda_b are purged in a unit of time, and as many
    inserted.

    >>> t_ab(lambda_a=10, lambda_b=10, w=2, t_j=1, t_s=0)
    1600
    """
    return 2 * w * (2 * t_j * lambda_a * lambda_b * w + 2 * t_s * (lambda_a + lambda_b))


def t_bc(lambda_b: float, lambda_c: float, w: float, t_j: float, t_s: float) -> float:
    """Compute the time of a new box's join for 2W of new tuples, from empty states (§5.2, Equation 6, corrected).

    In the first W nothing is purged and the states grow: at time t a tuple of B meets lambda_c t tuples of C. The sum
    over the first W is the integral, T_j lambda_b lambda_c W²; the equation multiplies it by W once more (a time
    squared) and has the rates of A and B where those of B and C are meant.

    >>> t_bc(lambda_b=10, lambda_c=10, w=2, t_j=1, t_s=0)
    1200.0
    """
    first = w * t_s * (lambda_b + lambda_c) + t_j * lambda_b * lambda_c * w**2
    return first + t_ab(lambda_b, lambda_c, w, t_j, t_s) / 2


def t_bc_as_printed(lambda_b: float, lambda_c: float, w: float, t_j: float, t_s: float) -> float:
    """Compute Equation 6 as printed, except for the names of the rates: right for W = 1 only.

    >>> t_bc_as_printed(lambda_b=10, lambda_c=10, w=2, t_j=1, t_s=0)
    1600.0
    """
    integral = lambda_c * w**2 / 2
    mirrored = lambda_b * w**2 / 2
    first = w * (t_s * (lambda_b + lambda_c) + t_j * (lambda_b * integral + lambda_c * mirrored))
    return first + w * (2 * t_j * lambda_b * lambda_c * w + 2 * t_s * (lambda_b + lambda_c))


def lambda_bc(t: float, lambda_b: float, lambda_c: float, w: float, sigma_bc: float) -> float:
    """Compute the output rate of a new box's join at time t after the start (§5.2, Equation 7, corrected).

    The rate grows with the states until they are full. What is printed for t <= W is its integral: the tuples made so
    far, not those made in a unit of time.

    >>> lambda_bc(t=1, lambda_b=10, lambda_c=10, w=2, sigma_bc=0.1), lambda_bc(9, 10, 10, w=2, sigma_bc=0.1)
    (20.0, 40.0)
    """
    return 2 * lambda_b * lambda_c * sigma_bc * min(t, w)


def lambda_bc_as_printed(t: float, lambda_b: float, lambda_c: float, w: float, sigma_bc: float) -> float:
    """Compute Equation 7 as printed: for t <= W the integral from 0 to t.

    >>> lambda_bc_as_printed(t=1, lambda_b=10, lambda_c=10, w=3, sigma_bc=0.1)
    10.0
    """
    if t <= w:
        return lambda_b * lambda_c * sigma_bc * t**2
    return 2 * lambda_b * lambda_c * sigma_bc * w


def t_ms_left_deep(
    lambda_b: float,
    lambda_c: float,
    lambda_d: float,
    w: float,
    t_j: float,
    t_s: float,
    sigma_bc: float,
    sigma_bcd: float,
) -> float:
    """Compute the time to move state from (((A B) C) D) to (A ((B C) D)) (§6.2, Equation 8, corrected).

    S_BC holds |S_B||S_C| sigma_BC tuples (`joined_state_size`). The equation takes lambda_BC W for it, as if a pair
    lived for W after it was made, and so counts the second state twice.

    >>> t_ms_left_deep(10, 10, 10, w=1, t_j=1, t_s=0, sigma_bc=0.1, sigma_bcd=0.1)
    200.0
    """
    s_bc = joined_state_size(lambda_b, lambda_c, w, sigma_bc)
    second = s_bc * state_size(lambda_d, w) * (t_j + t_s * sigma_bcd)
    return t_s_ab(lambda_b, lambda_c, w, t_j, t_s, sigma_bc) + second


def t_ms_left_deep_as_printed(
    lambda_b: float,
    lambda_c: float,
    lambda_d: float,
    w: float,
    t_j: float,
    t_s: float,
    sigma_bc: float,
    sigma_bcd: float,
) -> float:
    """Compute Equation 8 as printed.

    >>> t_ms_left_deep_as_printed(10, 10, 10, w=1, t_j=1, t_s=0, sigma_bc=0.1, sigma_bcd=0.1)
    300.0
    """
    upper = t_j * sigma_bc + t_s * sigma_bc * sigma_bcd
    return lambda_b * lambda_c * w**2 * (t_j + t_s * sigma_bc) + 2 * lambda_b * lambda_c * lambda_d * w**3 * upper
