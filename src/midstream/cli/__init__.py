"""The command line, which loads Spark in no command before it must.

In: arguments and a checkpoint's folder. Out: text or JSON, commands in the checkpoint's log, and an exit code.
"""
