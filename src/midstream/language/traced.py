"""A text made of another, of which is known where each of its characters stands in what the user wrote.

Parts of a query are rewritten before they are read. What is found wrong in them is told with the place at which
the user wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from midstream.language.place import offset_of, place
from midstream.language.tokens import tokens_of
from midstream.model.errors import LanguageError

_PLACE = re.compile(r"line (\d+), column (\d+)")


@dataclass(frozen=True)
class Traced:
    """A text, for each character the offset in the text that was `written`, and this.

    >>> text = Traced.of("SELECT  k FROM A")
    >>> shorter = text.squeezed()
    >>> shorter.text, shorter.place(7)
    ('SELECT k FROM A', 'line 1, column 9')
    """

    text: str
    origins: tuple[int, ...]
    written: str

    @classmethod
    def of(cls, text: str) -> Traced:
        """A text as it was written."""
        return cls(text, tuple(range(len(text))), text)

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, span: slice) -> Traced:
        return Traced(self.text[span], self.origins[span], self.written)

    def new(self, text: str, offset: int = 0) -> Traced:
        """Words that were not written, for what stands at an offset of this text."""
        return Traced(text, (self.origin(offset),) * len(text), self.written)

    def joined(self, pieces: Iterable[Traced | str]) -> Traced:
        """Pieces one behind the other; what was not written stands where the piece before it ends."""
        text, origins = "", list[int]()
        for piece in pieces:
            last = origins[-1] if origins else self.origin(0)
            text += piece if isinstance(piece, str) else piece.text
            origins += [last] * len(piece) if isinstance(piece, str) else piece.origins
        return Traced(text, tuple(origins), self.written)

    def listed(self, pieces: Iterable[Traced], between: str = ", ") -> Traced:
        """Pieces with words between them."""
        return self.joined([piece for one in pieces for piece in (between, one)][1:])

    def replaced(self, begin: int, end: int, pieces: Iterable[tuple[int, int, Traced]]) -> Traced:
        """The text from one offset to another, with what is to stand there between others."""
        made = list[Traced]()
        for start, stop, piece in pieces:
            made += [self[begin:start], piece]
            begin = stop
        return self.joined([*made, self[begin:end]])

    def blank(self) -> Traced:
        """Blanks in the place of the text, in as many lines."""
        return Traced("".join(c if c == "\n" else " " for c in self.text), self.origins, self.written)

    def stripped(self) -> Traced:
        """The text without blanks around it."""
        begin = len(self.text) - len(self.text.lstrip())
        return self[begin : max(begin, len(self.text.rstrip()))]

    def squeezed(self) -> Traced:
        """The text with single blanks between its words."""
        words = [self[found.start() : found.end()] for found in re.finditer(r"\S+", self.text)]
        return self.joined(piece for word in words for piece in ((" ", word) if word is not words[0] else (word,)))

    def rewritten(self, text: str, node: exp.Expr) -> Traced:
        """A text that sqlglot wrote of what it had read here as a node: each word stands where the same word does."""
        spans = [(part.meta["start"], part.meta["end"] + 1) for part in node.walk() if "start" in part.meta]
        begin, end = min((b for b, _ in spans), default=offset_above(node)), max((e for _, e in spans), default=0)
        words = [token for token in tokens_of(self.text) if begin <= token.start < end]
        origins, at, last = [self.origin(begin)] * len(text), 0, self.origin(begin)
        for token in tokens_of(text):
            found = next((n for n in range(at, len(words)) if words[n].text.lower() == token.text.lower()), None)
            if found is not None:
                last, at = self.origin(words[found].start), found + 1
            origins[token.start :] = [last] * (len(text) - token.start)
        return Traced(text, tuple(origins), self.written)

    def origin(self, offset: int) -> int:
        """Where in what was written the character at an offset stands."""
        if not self.origins:
            return len(self.written)
        return self.origins[offset] if offset < len(self.origins) else self.origins[-1] + offset - len(self.origins) + 1

    def place(self, offset: int) -> str:
        """The line and column in what was written of the character at an offset."""
        return place(self.written, self.origin(offset))

    @contextmanager
    def errors_placed(self) -> Iterator[None]:
        """A LanguageError that names a place in this text is told with that in what was written."""
        try:
            yield
        except LanguageError as error:
            found = _PLACE.fullmatch(error.place)
            if found is None or self.text == self.written:
                raise
            line, column = int(found[1]), int(found[2])
            offset = sum(len(one) + 1 for one in self.text.split("\n")[: line - 1]) + column - 1
            raise LanguageError(error.message, place=self.place(offset), remedy=error.remedy) from error


def offset_above(node: exp.Expr) -> int:
    """The offset of a node, or of the nearest one above it of which it is known."""
    around: exp.Expr | None = node
    while around is not None:
        if (offset := offset_of(around)) is not None:
            return offset
        around = around.parent
    return 0
