"""The pieces of CQL that SQL parsers do not know: found by token, read, and blanked out of the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.duration import parse_duration
from midstream.language.place import place
from midstream.language.tokens import closing, tokens_of, with_double_quotes
from midstream.model.errors import LanguageError
from midstream.model.window import Window

WINDOW_STAND_IN = "W1NDOW"
"""What Spark's function `window` is called in the plain SQL, as long a name: the parser knows WINDOW as a keyword."""

SESSION_STAND_IN = "S3SSION"

STAND_INS = {
    "WINDOW": WINDOW_STAND_IN,
    "TIMESTAMPDIFF": "T1MESTAMPDIFF",
    "DATEDIFF": "D4TEDIFF",
    "DATE_DIFF": "D4TE_DIFF",
    "SESSION": SESSION_STAND_IN,
}
"""Functions that the parser reads in one dialect's way only, and what they are called in the plain SQL."""

WINDOW_REMEDY = "write [RANGE n unit], such as [RANGE 20 SECONDS], or [ROWS n]"
_ENDS_OPERAND = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN}
_ENDS_OPERAND |= {TokenType.R_BRACKET, TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.STAR, TokenType.END}
_ENDS_OPERAND |= {TokenType.ASC, TokenType.DESC}


@dataclass(frozen=True)
class WindowClause:
    """A window or a duration and the offset of its first character."""

    offset: int
    window: Window


@dataclass(frozen=True)
class Subtrahend:
    """`EXCEPT ON (columns) stream [alias] [window]`; columns are (name, offset)."""

    columns: tuple[tuple[str, int], ...]
    stream: str
    alias: str
    offset: int
    window: WindowClause | None


@dataclass
class CqlText:
    """A query text in two parts: what is plain SQL, every character where it was, and the CQL pieces."""

    text: str
    sql: str = ""
    windows: list[WindowClause] = field(default_factory=list)
    window: WindowClause | None = None
    every: tuple[int, int] | None = None
    subtrahends: list[Subtrahend] = field(default_factory=list)
    window_function: str = ""
    partition: tuple[str, ...] = ()


def split_cql(text: str) -> CqlText:
    """The plain SQL of a query and its CQL pieces.

    Positions survive: a piece is replaced by as many blanks. `every` is (microseconds, offset).

    >>> found = split_cql("SELECT * FROM A [ROWS 3] AS a EVERY 5 SECONDS")
    >>> found.sql.split(), found.windows[0].window, found.every
    (['SELECT', '*', 'FROM', 'A', 'AS', 'a'], Window(kind='rows', size=3), (5000000, 30))
    """
    return _Splitter(text).run()


class _Splitter:
    def __init__(self, text: str) -> None:
        self.text, self.found, self.spans = text, CqlText(text), list[tuple[int, int]]()
        self.quoted = with_double_quotes(text)
        try:
            self.tokens = [*tokens_of(text)]
        except TokenError as error:
            quote = max(text.rfind("'"), text.rfind('"'), text.rfind("/*"))
            raise LanguageError(
                "the text cannot be split into words", place=place(text, quote), remedy="close the quote or comment"
            ) from error
        self.at = 0

    def run(self) -> CqlText:
        self.table_function()
        self.pieces()
        self.found.sql = self.plain_sql()
        return self.found

    def pieces(self) -> None:
        """Read the pieces one after the other, and note where each stands."""
        depth, seen_from = 0, False
        while self.at < len(self.tokens):
            token, start = self.tokens[self.at], self.at
            if token.token_type in (TokenType.L_PAREN, TokenType.R_PAREN):
                depth += 1 if token.token_type == TokenType.L_PAREN else -1
            elif depth == 0 and token.token_type == TokenType.FROM:
                seen_from = True
            elif depth and self.begins_window(in_from=seen_from):
                self.found.windows.append(self.bracket())
            elif depth == 0 and seen_from:
                self.clause(token)
            if self.at > start:
                self.spans.append((self.tokens[start].start, self.tokens[self.at - 1].end + 1))
            else:
                self.at += 1

    def plain_sql(self) -> str:
        """The text with stand-ins for functions, and blanks for pieces."""
        sql = list(self.quoted)
        for token, follower in zip(self.tokens, self.tokens[1:], strict=False):
            stand_in = STAND_INS.get(token.text.upper(), "")
            after = {TokenType.L_PAREN, TokenType.DOT} if stand_in == WINDOW_STAND_IN else {TokenType.L_PAREN}
            if stand_in and follower.token_type in after and token.end + 1 - token.start == len(stand_in):
                sql[token.start : token.end + 1] = stand_in
        for begin, end in self.spans:
            sql[begin:end] = [c if c == "\n" else " " for c in sql[begin:end]]
        return "".join(sql)

    def table_function(self) -> None:
        """Take out Flink's `TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL ...))`, but for the name of the stream."""
        words = [token.text.upper() for token in self.tokens]
        calls = (n for n in range(len(words)) if words[n : n + 2] == ["TABLE", "("] and words[n + 3 : n + 4] == ["("])
        if (at := next(calls, None)) is None:
            return
        end = closing(self.tokens, at + 1)
        inside = [n for n in range(at + 4, end - 1) if words[n] != "=>" and words[n + 1 : n + 2] != ["=>"]]
        stream = next((n for n in inside if words[n - 1] == "TABLE"), None)
        column = next((n for n in inside if words[n - 2 : n] == ["DESCRIPTOR", "("]), None)
        if stream is None or column is None or stream > column:
            raise self.error(self.tokens[at], f"TABLE({words[at + 2]}(...)) of no stream", _TABLE_SHAPE)
        rest = self.text[self.tokens[column + 1].end + 1 : self.tokens[end - 1].start]
        given = re.sub(r"\w+\s*=>", "", rest)
        function = self.tokens[at + 2].text
        time = self.tokens[column]
        named = f'"{time.text}"' if time.token_type == TokenType.IDENTIFIER else time.text
        self.found.window_function = f"{STAND_INS.get(function.upper(), function)}({named}{given})"
        quoted = {n for n in range(stream + 1, column - 2) if self.tokens[n].token_type == TokenType.IDENTIFIER}
        between = (n for n in range(stream + 1, column - 2) if n in inside and (n in quoted or words[n].isidentifier()))
        self.found.partition = tuple(words[n] for n in between if n in quoted or words[n] not in ("PARTITION", "BY"))
        self.spans += [
            (self.tokens[at].start, self.tokens[stream].start),
            (self.tokens[stream].end + 1, self.tokens[end].end + 1),
        ]
        self.tokens[at : end + 1] = [self.tokens[stream]]

    def clause(self, token: Token) -> None:
        """The piece that begins with a token of FROM or after it, if one does."""
        word, follower = token.text.upper(), self.peek(1)
        if token.token_type == TokenType.L_BRACKET and self.tokens[self.at - 1].token_type != TokenType.COMMA:
            # A subscript is a number or a text: attrs['k'].
            named = follower is not None and follower.token_type != TokenType.STRING and follower.text.isalpha()
            if follower is None or named or follower.token_type == TokenType.R_BRACKET:
                self.found.windows.append(self.bracket())
        elif word == "EXCEPT" and follower is not None and follower.token_type == TokenType.ON:
            self.found.subtrahends.append(self.subtrahend())
        elif word in _SET_OPERATIONS and self.ends_operand():
            raise self.error(token, f"{word} is not part of the language", _SET_OPERATIONS[word])
        elif word in ("WINDOW", "EVERY") and self.ends_operand() and not self.names_something(follower):
            self.time_clause(token, word)

    def time_clause(self, token: Token, word: str) -> None:
        """`WINDOW duration`, or `EVERY duration`."""
        self.at += 1
        size = self.duration(word)
        given = self.found.window if word == "WINDOW" else self.found.every
        if given is not None:
            raise self.error(token, f"{word} is given twice", f"keep one {word}")
        if word == "WINDOW":
            self.found.window = WindowClause(token.start, Window("range", size))
            return
        if size == 0:
            raise self.error(token, "EVERY 0 never comes to an end", "use a duration above zero")
        self.found.every = (size, token.start)

    def begins_window(self, in_from: bool) -> bool:
        """Whether a window of a stream in a subquery begins here, and no subscript."""
        follower, size = self.peek(1), self.peek(2)
        if self.tokens[self.at].token_type != TokenType.L_BRACKET or follower is None:
            return False
        sized = size is not None and size.token_type in (TokenType.NUMBER, TokenType.STRING)
        return (in_from or sized) and follower.text.upper() in ("RANGE", "ROWS", "NOW")

    def ends_operand(self) -> bool:
        """Whether the token before ends an operand, so that an operand cannot begin here."""
        return self.at > 0 and self.tokens[self.at - 1].token_type in _ENDS_OPERAND

    def names_something(self, follower: Token | None) -> bool:
        """Whether the token before `follower` is a mere name: `WINDOW w AS (...)`, an alias before a comma."""
        if follower is None or follower.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH):
            return False
        after = self.peek(2)
        return follower.token_type != TokenType.VAR or (after is not None and after.token_type == TokenType.ALIAS)

    def peek(self, distance: int) -> Token | None:
        return self.tokens[self.at + distance] if self.at + distance < len(self.tokens) else None

    def take(self, what: str, *kinds: TokenType) -> Token:
        token = self.peek(0)
        if token is None or (kinds and token.token_type not in kinds):
            raise self.error(token, f"expected {what}", f"see: {WINDOW_REMEDY}; EXCEPT ON (columns) stream [window]")
        self.at += 1
        return token

    def error(self, token: Token | None, message: str, remedy: str) -> LanguageError:
        offset = token.start if token is not None else len(self.text.rstrip())
        return LanguageError(message, place=place(self.text, offset), remedy=remedy)

    def bracket(self) -> WindowClause:
        opened = self.take("'['")
        kind = self.take("RANGE or ROWS")
        word = kind.text.upper()
        if word == "NOW":
            window = Window("range", 0)
        elif word == "RANGE":
            window = Window("range", self.duration("RANGE"))
        elif word == "ROWS":
            number = self.number("ROWS", kind)
            if not number.isdecimal() or len(number) > 19 or not 0 < int(number) < 2**62:
                raise self.error(kind, f"ROWS {number}: not a number of rows", "use a whole number of at least 1")
            window = Window("rows", int(number))
        else:
            raise self.error(kind, f"unknown window {kind.text!r}", WINDOW_REMEDY)
        closing = self.peek(0)
        if closing is None or closing.token_type != TokenType.R_BRACKET:
            raise self.error(closing, "the window does not end here", WINDOW_REMEDY)
        self.at += 1
        return WindowClause(opened.start, window)

    def number(self, what: str, kind: Token) -> str:
        sign = ""
        token = self.peek(0)
        if token is not None and token.token_type in (TokenType.DASH, TokenType.PLUS):
            sign = "-" if token.token_type == TokenType.DASH else ""
            self.at += 1
            token = self.peek(0)
        if token is None or token.token_type not in (TokenType.NUMBER, TokenType.STRING):
            raise self.error(token or kind, f"{what} needs a number", f"such as {what} 20{_UNIT.get(what, '')}")
        self.at += 1
        return sign + token.text

    def duration(self, what: str) -> int:
        kind = self.tokens[self.at - 1]
        token = self.peek(0)
        if token is not None and token.text.upper() == "INTERVAL":
            self.at += 1
        first = self.peek(0)
        text = self.number(what, kind)
        unit = self.peek(0)
        if unit is not None and unit.text.isalpha() and (first is None or " " not in first.text.strip()):
            text += f" {unit.text}"
            self.at += 1
        try:
            return parse_duration(text, what=what)
        except LanguageError as error:
            raise self.error(first or kind, error.message, error.remedy) from error

    def subtrahend(self) -> Subtrahend:
        self.take("EXCEPT")
        self.take("ON", TokenType.ON)
        self.take("'(' and columns", TokenType.L_PAREN)
        columns: list[tuple[str, int]] = []
        while True:
            name = self.take("a column")
            columns.append((name.text, name.start))
            if self.take("',' or ')'", TokenType.COMMA, TokenType.R_PAREN).token_type == TokenType.R_PAREN:
                break
        stream = self.take("a stream")
        alias, window = stream.text, None
        while (token := self.peek(0)) is not None:
            if token.token_type == TokenType.L_BRACKET and window is None:
                window = self.bracket()
            elif token.token_type == TokenType.ALIAS:
                self.at += 1
            elif token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and token.text.upper() != "EVERY":
                alias = self.take("an alias").text
            else:
                break
        return Subtrahend(tuple(columns), stream.text, alias, stream.start, window)


_TABLE_SHAPE = "write TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECONDS))"
_SET_OPERATIONS = {
    "UNION": "ask each SELECT as a query of its own",
    "INTERSECT": "join the streams by what they have in common",
    "EXCEPT": "write FROM a EXCEPT ON (columns) b",
}
"""What puts two SELECTs together, and what to write instead."""

_UNIT = {"RANGE": " SECONDS", "WINDOW": " SECONDS", "EVERY": " SECONDS"}
