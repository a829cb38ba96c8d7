"""One file for each figure of a paper; a figure is found by being here.

In: how much of the figure's range to measure. Out: its data, its drawing, and the paper's claims held against the data.
"""
