"""The fold: a manifest, a batch and commands become the next manifest, the results and the events of a step. Pure.

In: the last manifest, tables by stream, commands in order. Out: a `StepResult`. Embedded, all of it runs in one call;
on Spark the driver plans and concludes, and a task runs the step of a lane.
"""
