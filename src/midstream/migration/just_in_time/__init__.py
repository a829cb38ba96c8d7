"""What JISC is made of: keys, attempts and the completion of a state for a key (JISC §4).

In: a probe of a state that is incomplete. Out: the state, complete for the keys of the probe.
"""
