"""The seven invariants of an answer, each held by random cases against the oracle."""
