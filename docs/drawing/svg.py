"""As much of SVG as the pictures need."""

from __future__ import annotations

from html import escape
from textwrap import wrap

INK, LINE, PALE, PAPER, FLOOR, DOT = "#1d2b36", "#5f7583", "#d5dee3", "#ffffff", "#f1f5f7", "#1f6f8b"


class Drawing:
    """Marks on a sheet, in the order they were made."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._marks = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="system-ui, sans-serif">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0 8 4 0 8z" fill="{LINE}"/></marker></defs>',
        ]
        self.box(0, 0, width, height, PAPER, edge="none")

    def box(self, x: float, y: float, width: float, height: float, fill: str = PAPER, edge: str = LINE) -> None:
        """A rectangle."""
        self._marks.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}" stroke="{edge}"/>'
        )

    def text(self, x: float, y: float, words: str, size: int = 12, bold: bool = False, fill: str = INK) -> None:
        """Words on one line, beginning at x."""
        weight = ' font-weight="600"' if bold else ""
        self._marks.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}"{weight}>{escape(words)}</text>')

    def slanted(self, x: float, y: float, words: str, size: int = 12) -> None:
        """Words that rise to the right."""
        self._marks.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{INK}" transform="rotate(-50 {x:g} {y:g})">'
            f"{escape(words)}</text>"
        )

    def paragraph(self, x: float, y: float, words: str, columns: int, lines: int, size: int = 11) -> None:
        """Words on several lines, cut where there are too many."""
        for at, line in enumerate(wrap(words, columns, max_lines=lines, placeholder=" …")):
            self.text(x, y + at * (size + 3), line, size)

    def arc(self, x: float, y: float, to_y: float, most: float, faint: bool) -> None:
        """An arrow from one line down to another that swings out to the left, the farther the wider."""
        out = x - min(most, 18 + (to_y - y) * 0.42) * 1.3
        line = PALE if faint else LINE
        tip = "" if faint else ' marker-end="url(#tip)"'
        self._marks.append(
            f'<path d="M{x:g} {y:g}C{out:g} {y:g} {out:g} {to_y:g} {x:g} {to_y:g}" fill="none" stroke="{line}"{tip}/>'
        )

    def dot(self, x: float, y: float, radius: float = 5) -> None:
        """A filled circle."""
        self._marks.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{DOT}"/>')

    def rule(self, x: float, y: float, to_x: float, to_y: float, line: str = PALE) -> None:
        """A straight line."""
        self._marks.append(f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" stroke="{line}"/>')

    def __str__(self) -> str:
        return "\n".join([*self._marks, "</svg>\n"])
