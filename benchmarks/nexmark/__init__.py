"""The NEXMark benchmark: every query beside Spark's own streaming SQL, and joins of an auction day whose data drift."""
