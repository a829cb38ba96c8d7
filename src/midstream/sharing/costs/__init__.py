"""The cost models of state-slice sharing as pure functions: Wang ch. 4 to 7 (Part I of the dissertation).

Arguments carry the paper's symbols in ASCII: a Greek letter by its name (`lambda_a`, `s_sigma`, `rho`; `lambda_` alone
where the rates are equal), a capital by its small letter (`w_1` for W_1, `m_t` for M_t, `s_join` for S_⋈), a prime by
`_prime`. Units are the caller's: rates and windows share a unit of time, memory comes in the unit of `m_t` (1: rows),
CPU in comparisons per unit of time, or in seconds where unit costs are given.

Where an equation is wrong as printed, the function gives what the text's own derivation leads to; what is printed is
kept beside it under the name `..._as_printed`, so that the difference can be measured.
"""
