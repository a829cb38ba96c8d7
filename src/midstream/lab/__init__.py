"""The lab: the papers' figures, redrawn on the real engine under a virtual processor."""
