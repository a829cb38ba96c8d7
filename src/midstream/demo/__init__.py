"""The demo: a year of flights replayed through Spark, plans changed in mid-run, every answer checked."""
