"""One join of any condition spread over nodes: where rows are kept and where partial results look (Wang Part II).

In: rows and partial results as columns, and how a join is deployed over nodes. Out: the nodes that keep each row, and
the nodes that each partial result visits. Nothing in this room moves a row; it says where rows belong.
"""
