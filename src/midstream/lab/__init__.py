"""The lab: the papers' figures, redrawn on the real engine under a virtual processor, their claims judged.

In: a figure's name and how much of its range to measure. Out: pictures, CSV files and verdicts.
"""
