"""What JISC is made of (JISC §4)."""
