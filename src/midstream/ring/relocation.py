"""What moves where a ring of equal slices grows: how much each node passes on, and where new nodes stand (Wang §14.2).

Differs from Eq. 14.1 in that a new node also stands behind the node at which (M / N) i *is* the number j, where the
text asks for more than j: with one node added, no node would pass that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Relocation:
    """A ring of `nodes` equal slices to which `added` nodes come; slices are measured in those of the longer ring."""

    nodes: int
    added: int

    def passed_on(self) -> list[Fraction]:
        """Delta S_i for each node from the head on: what it passes on to the next old one, or to new ones between.

        >>> [str(part) for part in Relocation(3, 1).passed_on()]
        ['1/3', '2/3', '0']
        """
        shares = [Fraction(self.added, self.nodes) * at for at in range(1, self.nodes + 1)]
        return [share - int(share) for share in shares]

    def behind(self) -> list[int]:
        """For each new node the old one behind which it stands, counted from 1: the first that can fill it.

        >>> Relocation(3, 1).behind(), Relocation(2, 3).behind()
        ([3], [1, 2, 2])
        """
        return [-(-self.nodes * new // self.added) for new in range(1, self.added + 1)]

    def order(self) -> list[int | None]:
        """The longer ring from head to tail: old nodes by their place, counted from 1, new ones as None.

        >>> Relocation(2, 3).order()
        [1, None, 2, None, None]
        """
        behind = self.behind()
        return [node for old in range(1, self.nodes + 1) for node in (old, *[None] * behind.count(old))]
