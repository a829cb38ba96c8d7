"""The pages of the project as a reader meets them: their links, headings and fenced pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Page:
    """A Markdown file, parsed as CommonMark with tables."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def tokens(self) -> list[Token]:
        return MarkdownIt("commonmark").enable("table").parse(self.path.read_text(encoding="utf-8"))

    def links(self) -> Iterator[str]:
        """The targets of links and pictures, in order."""
        for token in self._inline():
            target = token.attrs.get("href" if token.type == "link_open" else "src")
            if token.type in ("link_open", "image") and target:
                yield str(target)

    def anchors(self) -> set[str]:
        """What a link may name after `#`: headings as GitHub names them, and anchors set by hand."""
        found: set[str] = set(re.findall(r'<a id="([^"]+)">', self.path.read_text(encoding="utf-8")))
        for at, token in enumerate(self.tokens):
            if token.type == "heading_open":
                words = "".join(
                    t.content for t in self.tokens[at + 1].children or () if t.type in ("text", "code_inline")
                )
                name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
                again = sum(1 for other in found if re.fullmatch(re.escape(name) + r"(-\d+)?", other))
                found.add(f"{name}-{again}" if again else name)
        return found

    def fences(self, *languages: str) -> list[str]:
        """The fenced pieces in one of these languages, in order ('' for none)."""
        return [t.content for t in self.tokens if t.type == "fence" and t.info.strip() in languages]

    def programs(self) -> list[tuple[int, str]]:
        """Its Python: fenced pieces, and what stands in comments `<!--python ... -->` to make them whole, by line."""
        found: list[tuple[int, str]] = []
        if "python\n" not in self.path.read_text(encoding="utf-8"):
            return found
        for token in self.tokens:
            line = (token.map or [0])[0] + 2
            if token.type == "fence" and token.info.strip() == "python":
                found.append((line, token.content))
            elif token.type == "html_block" and token.content.startswith("<!--python\n"):
                found.append((line, token.content.removeprefix("<!--python\n").partition("-->")[0]))
        return found

    def code(self) -> list[str]:
        """The lines of fenced console pieces, and all code within the text."""
        lines = [line for piece in self.fences("console", "") for line in piece.splitlines()]
        return [*lines, *(token.content for token in self._inline() if token.type == "code_inline")]

    def _inline(self) -> Iterator[Token]:
        return (child for token in self.tokens if token.type == "inline" for child in token.children or ())


PAGES = [
    Page(path)
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
]
