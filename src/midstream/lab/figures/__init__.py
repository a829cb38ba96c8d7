"""One file per figure of a paper; a figure is found by being here."""
