"""The command line: one file per command, none of which loads Spark before it must."""
