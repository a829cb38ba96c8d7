"""Every strategy and plan form, through the same random cases, against the oracle."""
