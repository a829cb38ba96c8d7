"""The figures of the papers, those of a section or of one kind in a file; a figure is found by being here.

In: how much of the figure's range to measure. Out: its data, its drawing, and the paper's claims held against the data.
"""
