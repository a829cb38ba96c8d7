"""The papers' cost models as pure functions: Zhu §5, HybMig §4.4, JISC §5.

Arguments carry the papers' symbols in ASCII: a Greek letter by its name (`lambda_a`, `sigma_ab`, `tau`), a capital by
its small letter (`w` for W, `t_j` for T_j, `s_a` for |S_A|), a prime by `_prime` (`t_new_prime` for T'_new). Units are
the caller's: with `t_j=1, t_s=0` a time is a number of comparisons.
"""
