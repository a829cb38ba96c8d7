"""What HybMig is made of (HybMig §3.3, §3.4)."""
