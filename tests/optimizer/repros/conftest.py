"""The scripts are run by `test_schedule.py`, and must not be imported to look for tests in them."""

collect_ignore_glob = ["*.py"]
