"""The plan-change benchmark: what a running join's output goes through while its plan is changed, on the wall clock.

No public benchmark measures a plan change during a run, so this one defines it. Rows are released by a schedule; the
harness hands over what has arrived; data drift, and the plan is changed. Every strategy that is there runs on the same
rows, beside `never_migrate` and `restart_from_scratch`, which is what users of other systems do.
"""
