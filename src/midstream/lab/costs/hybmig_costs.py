"""How long HybMig and the black-box migrations last, and what they cost (HybMig §3.5, §4.4).

`tau` is the rate of each of `n` streams during the migration, `tau_prime` before it, `w` the window, `t_old` and
`t_new` the time a plan takes for one new tuple, `t_new_prime` the time the new plan takes for one old tuple.
"""

from __future__ import annotations

from math import inf


def duration_hybmig(w: float, bsc_finish: float = inf) -> float:
    """Compute the length of a migration by HybMig or PT: w, or less if the background finishes (§3.5).

    `bsc_finish` is the time after the start when background state computation is done.

    >>> duration_hybmig(w=180), duration_hybmig(w=180, bsc_finish=20)
    (180, 20)
    """
    return min(w, bsc_finish)


def duration_gms(tau_prime: float, n: float, w: float, t_new_prime: float) -> float:
    """Compute length and CPU time of GMS: one window's old tuples, replayed (§4.4: Duration_GMS = CPU_GMS).

    The text expects T'_new >= T_new, the new plan being made for the new data. Where the data stay as they are it is
    the other way round: replayed tuples meet states that fill up, new ones full states.

    >>> duration_gms(tau_prime=1, n=6, w=180, t_new_prime=0.5)
    540.0
    """
    return tau_prime * n * w * t_new_prime


def spike_len_gms(tau: float, tau_prime: float, n: float, w: float, t_new: float, t_new_prime: float) -> float:
    """Compute how long the output spikes after GMS, until what arrived during the silence is processed (§4.4).

    Infinite where the new plan cannot keep up, `tau n t_new >= 1`: the equation turns negative there.

    >>> spike_len_gms(tau=1, tau_prime=1, n=5, w=100, t_new=0.1, t_new_prime=0.1)
    50.0
    """
    waiting = tau * n * duration_gms(tau_prime, n, w, t_new_prime)
    spare = 1 - tau * n * t_new
    return waiting * t_new / spare if spare > 0 else inf


def duration_gpt(w: float) -> float:
    """Compute the length of GPT: one window (§4.4).

    >>> duration_gpt(w=180)
    180
    """
    return w


def cpu_gpt(tau: float, n: float, w: float, t_old: float, t_new: float) -> float:
    """Compute the CPU time of GPT: both plans see every tuple of one window (§4.4: CPU_GPT).

    The new plan's states are empty at first, so this is what it costs at most.

    >>> cpu_gpt(tau=1, n=6, w=180, t_old=0.5, t_new=0.5)
    1080.0
    """
    return tau * n * w * (t_old + t_new)


def d_1(tau: float, tau_prime: float, n: float, w: float, t_old: float, t_new_prime: float) -> float:
    """Compute the first phase of GHM: the new plan replays old tuples, the old one serves new ones (§4.4: d_1).

    The text says that an old tuple costs T_new, the equation has T'_new; the equation is meant, as in GMS. Infinite
    where the old plan alone takes all the time there is.

    >>> d_1(tau=1, tau_prime=1, n=5, w=100, t_old=0.1, t_new_prime=0.1)
    100.0
    """
    spare = 1 - tau * n * t_old
    return duration_gms(tau_prime, n, w, t_new_prime) / spare if spare > 0 else inf


def d_2(tau: float, tau_prime: float, n: float, w: float, t_old: float, t_new: float, t_new_prime: float) -> float:
    """Compute the second phase of GHM: the new plan catches up with what arrived since the start (§4.4: d_2).

    >>> round(d_2(tau=1, tau_prime=1, n=5, w=100, t_old=0.1, t_new=0.05, t_new_prime=0.1))
    100
    """
    spare = 1 - tau * n * (t_new + t_old)
    return tau * n * d_1(tau, tau_prime, n, w, t_old, t_new_prime) * t_new / spare if spare > 0 else inf


def duration_ghm(
    tau: float, tau_prime: float, n: float, w: float, t_old: float, t_new: float, t_new_prime: float
) -> float:
    """Compute the length, and CPU time, of GHM (§4.4: Duration_GHM = d_1 + d_2).

    The sum is `tau_prime n w t_new_prime / (1 - tau n (t_old + t_new))`: GMS's work in the time both plans leave over.
    Where the text writes the sum out, its first term reads `tau n d_1 T_new (1 - tau n T_old)`, which is not d_1; it is
    taken for a misprint. It is infinite where both plans together take all the time there is.

    >>> round(duration_ghm(tau=1, tau_prime=1, n=5, w=100, t_old=0.1, t_new=0.05, t_new_prime=0.1))
    200
    """
    first = d_1(tau, tau_prime, n, w, t_old, t_new_prime)
    return first + d_2(tau, tau_prime, n, w, t_old, t_new, t_new_prime)


def delay_gpt(t_old: float) -> float:
    """Compute the average delay of a result under GPT and GHM: the old plan has priority (§4.4).

    >>> delay_gpt(t_old=0.5)
    0.5
    """
    return t_old
