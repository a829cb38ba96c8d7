"""Check the prose of midstream: sentence length, banned words and passive chains, in pages, docstrings and messages.

Run as `python scripts/lint_prose.py [FILE ...]`; without files it reads everything that a user meets. Each finding is
one line, `file:line: rule: text`, and the exit code is 1 if there is one. `--sample N [--seed S]` prints N sentences
drawn at random instead, for a person to judge.

The rules:

- length: a sentence has at most `MOST_WORDS` words. Code in backticks, a link and a number count as one word each.
- banned: the words of `BANNED` hide who does what; each has a plain word in its place.
- passive: a sentence has at most two verbs in the passive voice.
- beginning: a sentence does not begin with "What", "Those", "Its", "So is" or "The same of".
- chain: a relative clause has no relative clause of its own.

Docstrings of private names are checked for the words of `HIDDEN_WORD` only. They are not
drawn, and neither are parts of messages, such as a text in a variable.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "midstream"

MOST_WORDS = 30
MOST_PASSIVES = 2

# Tables of measurements in sentences, which `midstream lab` writes: most of their words are numbers. Of its code the
# private texts are not read.
GENERATED = ("docs/lab.md",)
LAB = SOURCE / "lab"

# A text in code is a message if it has more words than this, and nothing that only code and patterns have.
SHORTEST_MESSAGE = 1
ERROR = re.compile(r"Error$|^(?:WrongUse|Failed|BadParameter|error_at|_?(?:error|wrong|fault|refused))$")
# Kinds that no user reads as a sentence, and kinds in which a semicolon ends one.
HIDDEN = ("private", "part")
LISTS = ("cell", "message", "part")
NOT_PROSE = re.compile(
    r"^\s*[<(/]|\n|[{}\\|]|\b(?:SELECT|FROM|WHERE|INSERT|DELETE|UPDATE|CREATE|ALTER|DROP|SET)\b [`\w]+ |=$"
)

# A pattern, and what to write instead.
BANNED = {
    r"whoever": "the writer, the reader, ...: name who",
    r"whatever": "any, every",
    r"whence": "from where",
    r"lest": "so that ... not",
    r"but for": "except",
    r"of which one": "one of them",
    r"stands? in": "is in",
    r"stood in": "was in",
    r"heirs?": "successor",
    r"relived?": "replay",
    r"poured": "streamed out",
    r"thereof|therein|thereby|therewith|hereby|herein|hitherto|hence|wherein|whereby": "say it in plain words",
    r"nor must|nor need|need not|needs not": "do not have to",
    r"is told|are told|was told|were told|be told|not told": "reported",
    r"in order to": "to",
    r"utili[sz]e[sd]?": "use",
    r"dearest": "most expensive",
    r"surely between": "a range",
    r"anew": "again",
    r"beside": "next to, together with, compared with",
    r"texts": "strings, values, names",
    r"(?:says?|sees?|know|knows|asks?) if": "... whether",
    r"also (?:if|when)": "even if",
    r"cannot stand|stands? outside": "is not allowed",
    r"make it one|nobody knows": "name what it is",
    r"(?<!here )is no (?:\w+ )?(?:object|number|text|column|plan|query|type|function|sink|SQL|JSON)": "is not a",
}
# Rule 3: repeat the noun.
BEGINNING = re.compile(r"(?:The same of|Those|What) (?!made)|Its |So (?:is|are|do|does|it is) ")
BANNED_WORD = re.compile(r"\b(?:" + "|".join(BANNED) + r")\b", re.IGNORECASE)
HIDDEN_WORD = re.compile(r"\b(?:anew|beside|but for|hence|in order to|needs? not)\b", re.IGNORECASE)

# Two relative clauses, the second about a noun of the first: "an error that names the file that is damaged".
_CLAUSE_VERB = r"(?:is|are|was|were|has|have|had|reads?|runs?|says?|names?|keeps?|needs?|makes?|lists?|shows?|waits?)"
CHAIN = re.compile(rf"\b(?:that|which) (?:[\w'-]+ ){{1,8}}(?:that|which) {_CLAUSE_VERB}\b")

# Participles that do not end in -ed and that our pages use.
IRREGULAR = (
    "begun|bound|broken|brought|built|chosen|cut|done|drawn|driven|found|frozen|given|held|hidden|kept|known|laid|left|"
    "lost|made|meant|met|paid|put|read|run|said|seen|sent|set|shown|split|spread|taken|thrown|told|understood|written"
)
PASSIVE = re.compile(rf"\b(?:is|are|was|were|be|been|being)(?:\s+(?:not|also|then|only))?\s+(?:\w+ed|{IRREGULAR})\b")

# Not the end of a sentence: a full stop after these, or one that a small letter follows.
SHORT = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|approx|no|fig|sec)\.", re.IGNORECASE)
# Names that begin a sentence with a small letter.
SMALL = re.compile(r"(midstream|numpy|pandas|libpq|test_\w+)\b")
END = re.compile(r"[.!?][)\"'*_]*(?=\s|$)")


@dataclass(frozen=True)
class Passage:
    """A piece of prose and where it stands: a paragraph, an item, a docstring's paragraph or a message."""

    path: Path
    line: int
    kind: str
    text: str

    def sentences(self) -> list[str]:
        """Split the text at ends of sentences; in a cell or a message a semicolon ends one too."""
        text = SHORT.sub(r"\1", " ".join(self.text.split()))
        if self.kind in LISTS:
            text = text.replace("; ", ". ")
        found, begin = [], 0
        for match in END.finditer(text):
            rest = text[match.end() :].lstrip()
            small = rest[:1].islower() and self.kind not in LISTS
            if (small or rest[:1] in tuple(".,;:")) and not SMALL.match(rest):
                continue
            found.append(text[begin : match.end()].strip())
            begin = match.end()
        found.append(text[begin:].strip())
        return [sentence for sentence in found if re.search(r"[A-Za-z]{2}", sentence)]


@dataclass(frozen=True)
class Finding:
    """A sentence that breaks a rule."""

    passage: Passage
    rule: str
    detail: str

    def __str__(self) -> str:
        """Format as `file:line: rule: detail`, with the path as seen from the repository."""
        path = self.passage.path
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        return f"{name}:{self.passage.line}: {self.rule}: {self.detail}"


def words(sentence: str) -> int:
    """Count words; code in backticks is one.

    >>> words("Run `make test` twice, then stop.")
    5
    """
    return len(re.findall(r"[\w'/.,%-]*\w[\w'/.,%-]*", re.sub(r"`[^`]*`", "code", sentence)))


def findings(passage: Passage) -> Iterator[Finding]:
    """Check each sentence of a passage against the rules; of private docstrings only `HIDDEN_WORD`."""
    for sentence in passage.sentences():
        plain = re.sub(r"`[^`]*`", "code", sentence)
        if passage.kind == "private":
            for match in HIDDEN_WORD.finditer(plain):
                yield Finding(passage, "banned", f"{match[0]!r} ({remedy(match[0])}): {sentence}")
            continue
        if words(sentence) > MOST_WORDS:
            yield Finding(passage, "length", f"{words(sentence)} words: {sentence}")
        if passage.kind != "cell" and BEGINNING.match(plain):
            yield Finding(passage, "beginning", f"repeat the noun: {sentence}")
        for match in BANNED_WORD.finditer(plain):
            yield Finding(passage, "banned", f"{match[0]!r} ({remedy(match[0])}): {sentence}")
        passives = PASSIVE.findall(plain)
        if len(passives) > MOST_PASSIVES:
            yield Finding(passage, "passive", f"{', '.join(passives)}: {sentence}")
        if passage.kind != "cell" and (chain := CHAIN.search(plain)):
            yield Finding(passage, "chain", f"{chain[0]!r}: {sentence}")


def remedy(word: str) -> str:
    """Find what to write instead of a banned word.

    >>> remedy("Whoever")
    'the writer, the reader, ...: name who'
    """
    return next(say for pattern, say in BANNED.items() if re.fullmatch(pattern, word, re.IGNORECASE))


def of_markdown(path: Path) -> Iterator[Passage]:
    """Yield the paragraphs, items and cells of a page; neither code, nor HTML, nor headings."""
    heading = False
    cell = False
    line = 0
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8")):
        if token.map:
            line = token.map[0] + 1
        if token.type in ("heading_open", "heading_close"):
            heading = token.type == "heading_open"
        if token.type in ("td_open", "td_close", "th_open", "th_close"):
            cell = token.type.endswith("open")
        if token.type != "inline" or heading:
            continue
        pieces = []
        for child in token.children or ():
            match child.type:
                case "text":
                    pieces.append(child.content)
                case "code_inline":
                    pieces.append("`" + child.content + "`")
                case "softbreak" | "hardbreak":
                    pieces.append(" ")
        yield Passage(path, line, "cell" if cell else "page", "".join(pieces))


def of_module(path: Path, public: frozenset[str] | None) -> Iterator[Passage]:
    """Yield the docstrings of a module, its help texts, and its other texts of more than one word.

    Args:
        path: The module's file.
        public: Classes and functions whose docstrings a user reads; None for all that have no underscore.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    read: set[int] = set()
    for named in tree.body:
        if isinstance(named, ast.ClassDef | ast.FunctionDef) and (public is None or named.name in public):
            read.update(_met(named))
    documented = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    for node in documented:
        yield from _docstrings(path, node, "docstring" if id(node) in read else "private")
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    helps = {id(k.value) for n in calls for k in n.keywords if k.arg == "help"}
    errors = {id(a) for n in calls if ERROR.search(_called(n)) for a in [*n.args, *(k.value for k in n.keywords)]}
    notes = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for value in _texts(tree, {id(node.body[0]) for node in documented if node.body}):
        text = _said(value)
        if id(value) in notes:
            yield Passage(path, value.lineno, "private", text)
        elif id(value) in helps or (len(text.split()) > SHORTEST_MESSAGE and not NOT_PROSE.search(text)):
            kind = "help" if id(value) in helps else "message" if id(value) in errors else "part"
            yield Passage(path, value.lineno, kind, text)


def _texts(node: ast.AST, skipped: set[int]) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Walk the literal texts below a node, an f-string as one text, without the statements `skipped`."""
    for child in ast.iter_child_nodes(node):
        if id(child) in skipped and isinstance(child, ast.Expr):
            continue
        if isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Constant) and isinstance(child.value, str)):
            yield child
        if isinstance(child, ast.JoinedStr):
            for part in child.values:
                yield from _texts(part, skipped)
        else:
            yield from _texts(child, skipped)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _said(value: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    return "".join(str(p.value) if isinstance(p, ast.Constant) else "`x`" for p in value.values)


def _met(node: ast.ClassDef | ast.FunctionDef) -> Iterator[int]:
    """Yield the ids of a name and its members that have no underscore."""
    if not node.name.startswith("_"):
        yield id(node)
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                yield id(member)


def _docstrings(path: Path, node: ast.Module | ast.ClassDef | ast.FunctionDef, kind: str) -> Iterator[Passage]:
    for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
        lines = [one for one in paragraph.splitlines() if one.strip()]
        # Doctests and indented code are not prose; each entry of Args is a passage.
        if any(one.lstrip().startswith((">>>", "...")) for one in lines):
            continue
        entries: list[str] = []
        for one in lines:
            if re.match(r"\s*(- |\w+: |Args:|Returns:|Raises:)", one) or not entries:
                entries.append(one)
            else:
                entries[-1] += " " + one
        for entry in entries:
            yield Passage(path, node.body[0].lineno, kind, entry.strip())


def public_names() -> dict[Path, frozenset[str]]:
    """Find the modules that the public packages import names from, and those names."""
    found: dict[Path, set[str]] = {}
    for package in (SOURCE, SOURCE / "sinks", SOURCE / "testing"):
        tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                base = ROOT / "src" / Path(*node.module.split("."))
                path = base.with_suffix(".py")
                if path.is_file():
                    found.setdefault(path, set()).update(alias.name for alias in node.names)
    found.setdefault(SOURCE / "spark" / "run.py", set()).add("Run")
    return {path: frozenset(names) for path, names in found.items()}


def everything() -> Iterator[Passage]:
    """Yield all prose: pages, docstrings, help, and messages of errors, events and commands."""
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        if path.relative_to(ROOT).as_posix() not in GENERATED:
            yield from of_markdown(path)
    public = public_names()
    for path in sorted(SOURCE.rglob("*.py")):
        everyone = path.parent.name == "cli" or path == SOURCE / "model" / "events.py"
        passages = of_module(path, None if everyone else public.get(path, frozenset()))
        yield from (p for p in passages if not path.is_relative_to(LAB) or p.kind not in HIDDEN)


def of_files(names: Sequence[str]) -> Iterator[Passage]:
    """Yield the prose of given files."""
    for name in names:
        path = Path(name).resolve()
        yield from of_markdown(path) if path.suffix == ".md" else of_module(path, None)


def sample(count: int, seed: int) -> list[str]:
    """Draw sentences at random: each kind of prose in proportion to what there is of it."""
    drawn = [(p, s) for p in everything() if p.kind not in HIDDEN for s in p.sentences() if words(s) > 3]
    chosen = random.Random(seed).sample(drawn, count)
    return [f"{p.path.relative_to(ROOT)}:{p.line} [{p.kind}] {s}" for p, s in chosen]


def main(arguments: Sequence[str]) -> int:
    """Print findings, or a sample with `--sample N`; return 1 if there are findings."""
    if arguments[:1] == ["--sample"]:
        seed = int(arguments[3]) if arguments[2:3] == ["--seed"] else 0
        print("\n".join(sample(int(arguments[1]), seed)))
        return 0
    found = [one for p in (of_files(arguments) if arguments else everything()) for one in findings(p)]
    for one in found:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
