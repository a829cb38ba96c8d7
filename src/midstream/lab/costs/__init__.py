"""The papers' closed forms as pure functions: figures draw them, tests compare the engine with them.

Zhu §5, HybMig §4.4, JISC §5, Wang ch. 4 to 7 and 13, OM. Arguments carry the papers' symbols in ASCII: a Greek letter
by its name (`lambda_a`, `s_sigma`, `tau`; `lambda_` alone where the rates are equal), a capital by its small letter
(`w_1` for W_1, `t_j` for T_j, `s_a` for |S_A|), a prime by `_prime`. Units are the caller's: rates and windows share a
unit of time, and with `t_j=1, t_s=0` a time is a number of comparisons.

Where an equation is wrong as printed, the function gives what the text's own derivation leads to; what is printed is
kept beside it under the name `..._as_printed`, so that the difference can be measured.
"""
