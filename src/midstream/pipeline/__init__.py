"""What is the same of a job in every host: its folders, its outputs and their sinks, what its script declares.

In: a checkpoint, what is declared, the manifest of each step. Out: the commands that lead from one to the other, and
filled sinks.
"""
