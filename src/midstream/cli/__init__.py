"""The command line: one file for each command, none of which loads Spark before it must.

In: arguments and a checkpoint's folder. Out: text or JSON, commands in the checkpoint's log, and an exit code.
"""
