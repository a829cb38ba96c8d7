"""Golden cases: queries and plans with what midstream says of them, as texts that a reader can check, all executed."""
