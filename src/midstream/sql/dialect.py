"""SQL as midstream speaks it: DuckDB's, with windows behind streams, WINDOW, EVERY, EXCEPT ON and Flink's TABLE(...).

What SQL has not stands in the tree as arguments of its nodes: of a source of FROM its `window` and the `windowed`
function around it, of a SELECT its `window`, `every` and `subtrahends`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.expr.duration import MICROSECONDS, parse_duration
from midstream.model.errors import LanguageError
from midstream.model.window import Window
from midstream.sql.place import offset_of, place, place_of

SHAPE = "write SELECT ... FROM stream [RANGE n unit], ... WHERE ..."
WINDOW_REMEDY = "write [RANGE n unit], such as [RANGE 20 SECONDS], or [ROWS n]"
_TABLE_SHAPE = "write TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECONDS))"
_UNIT = {"RANGE": " SECONDS", "WINDOW": " SECONDS", "EVERY": " SECONDS"}
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_OPERATIONS = {TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT}
_BEGINS_SELECT = {TokenType.SELECT, TokenType.WITH, TokenType.ALL, TokenType.DISTINCT, TokenType.L_PAREN}
WINDOW_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
"""What may stand in FROM without TABLE(...) around it."""

RELATION_OPERATORS = ("ISTREAM", "DSTREAM", "RSTREAM")
"""CQL's operators from relations to streams, around a SELECT or around its select list."""

_HALF = re.compile("[\\ud800-\\udfff]")


@dataclass(frozen=True)
class WindowClause:
    """A window or a duration and the offset of its first character."""

    offset: int = field(compare=False, repr=False)
    window: Window


@dataclass(frozen=True)
class Subtrahend:
    """`EXCEPT ON (columns) stream [alias] [window]`; columns are (name, offset)."""

    columns: tuple[tuple[str, int], ...]
    stream: str
    alias: str
    offset: int
    window: WindowClause | None


@dataclass(frozen=True)
class WindowFunction:
    """The `call` of `TABLE(TUMBLE(TABLE s PARTITION BY columns, DESCRIPTOR(ts), ...))`, as GROUP BY would have it."""

    call: exp.Expr
    partition: tuple[str, ...]


@dataclass(frozen=True)
class CqlText:
    """A query's text and those of its clauses that SQL has not.

    `every` is (microseconds, offset), `relation` the operator in small letters and its offset.
    """

    text: str
    window: WindowClause | None = None
    every: tuple[int, int] | None = None
    subtrahends: tuple[Subtrahend, ...] = ()
    windowed: WindowFunction | None = None
    relation: tuple[str, int] | None = None

    @classmethod
    def of(cls, text: str, tree: exp.Expr) -> CqlText:
        """The clauses of a SELECT.

        >>> found = CqlText.of("", statement("SELECT * FROM A [ROWS 3] AS a EVERY 5 SECONDS"))
        >>> found.every, found.window
        ((5000000, 30), None)
        """
        source, args = tree.args.get("from_"), tree.args
        windowed = None if source is None else source.this.args.get("windowed")
        subtrahends, relation = args.get("subtrahends") or (), args.get("relation")
        return cls(text, args.get("window"), args.get("every"), subtrahends, windowed, relation)


def statement(text: str, tokens: list[Token] | None = None) -> exp.Expr:
    """The tree of a text, of which the words may be there; raises LanguageError where it is not a single statement.

    >>> statement("SELECT * FROM A [ROWS 3] AS a").args["from_"].this.args["window"].window
    Window(kind='rows', size=3)
    """
    tokens = tokenize(text) if tokens is None else tokens
    try:
        trees = [tree for tree in Midstream().parser().parse(tokens, text) if tree is not None]
    except ParseError as error:
        raise _unreadable(error) from error
    except IndexError as error:  # The parser's own, of VAR_MAP(1) for one.
        message = "the query is not SQL: a function lacks an argument"
        raise LanguageError(message, place=place(text, 0), remedy=SHAPE) from error
    if len(trees) != 1:
        spot = place_of(text, trees[-1]) if trees else place(text, 0)
        raise LanguageError(f"a query must be one SELECT, not {len(trees)} statements", place=spot, remedy=SHAPE)
    for node in trees[0].walk():
        node.comments = None  # They are not part of what is asked.
    return trees[0]


def tokenize(text: str) -> list[Token]:
    """The words of a text; raises LanguageError where a quote or a comment does not end, and for halves of characters,
    which no file can hold.
    """
    if (half := _HALF.search(text)) is not None:
        remedy = "write the whole character; text that was decoded with surrogateescape has such halves"
        raise LanguageError(f"{half[0]!r} is only half of a character", place=place(text, half.start()), remedy=remedy)
    try:
        return Midstream().tokenize(text)
    except TokenError as error:
        quote = max(text.rfind("'"), text.rfind('"'), text.rfind("/*"))
        message, remedy = "the text cannot be split into words", "close the quote or comment"
        raise LanguageError(message, place=place(text, quote), remedy=remedy) from error


def _unreadable(error: ParseError) -> LanguageError:
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line") or 1, details.get("col") or 1
    highlight = details.get("highlight") or ""
    message = str(details.get("description") or "it cannot be read").split("\n")[0].rstrip(".").lower()
    if "<class" in message:
        message = "something is missing"
    near = f" near {highlight!r}" if highlight else ""
    spot = f"line {line}, column {max(column - len(highlight) + 1, 1)}"
    return LanguageError(f"the query is not SQL{near}: {message}", place=spot, remedy=SHAPE)


class _Parser(DuckDBParser):
    # These are read as functions of any name: Spark's and DuckDB's arguments differ.
    FUNCTIONS: ClassVar = {
        name: build
        for name, build in DuckDBParser.FUNCTIONS.items()
        if name not in ("TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF")
    }
    FUNCTIONS_WITH_ALIASED_ARGS: ClassVar = {*DuckDBParser.FUNCTIONS_WITH_ALIASED_ARGS, *RELATION_OPERATORS}
    FUNC_TOKENS: ClassVar = DuckDBParser.FUNC_TOKENS | {TokenType.SESSION}
    QUERY_MODIFIER_TOKENS: ClassVar = DuckDBParser.QUERY_MODIFIER_TOKENS - {
        TokenType.WINDOW
    }  # GROUP BY window(ts, ...)

    def reset(self) -> None:
        super().reset()
        self._windows: dict[int, WindowClause] = {}  # Read, but of no source yet; the parser may read one twice.

    def parse(self, raw_tokens: list[Token], sql: str = "") -> list[exp.Expr | None]:
        if raw_tokens and raw_tokens[0].token_type in _OPERATIONS:
            message = f"no SELECT before {raw_tokens[0].text.upper()}"
            spot = place(sql, raw_tokens[0].start)
            raise LanguageError(
                message, place=spot, remedy=f"write a SELECT before {raw_tokens[0].text.upper()}, or leave the word out"
            )
        around, inner = self._around(raw_tokens, sql)
        trees = super().parse(inner, sql)
        if around is not None:
            for tree in trees:
                self._relate(tree, around, sql)
        if self._windows:
            raise self._no_stream(min(self._windows))
        return trees

    def _around(self, tokens: list[Token], sql: str) -> tuple[Token | None, list[Token]]:
        """Take a relation operator off that stands around a whole SELECT: `DSTREAM(SELECT ...)`."""
        words = [token.token_type for token in tokens[1:3]]
        if not tokens or tokens[0].text.upper() not in RELATION_OPERATORS or words[:1] != [TokenType.L_PAREN]:
            return None, tokens
        if words[1:] not in ([TokenType.SELECT], [TokenType.WITH]):
            return None, tokens
        last = next(at for at in reversed(range(len(tokens))) if tokens[at].token_type != TokenType.SEMICOLON)
        if tokens[last].token_type != TokenType.R_PAREN:
            spot, message = place(sql, tokens[last].start), f"{tokens[0].text.upper()}( does not end here"
            raise LanguageError(message, place=spot, remedy="put the whole query into the brackets: (SELECT ...)")
        return tokens[0], tokens[2:last]

    def _take_relation(self, select: exp.Select) -> None:
        """Take a relation operator off that stands around a select list: `SELECT DSTREAM(*)`."""
        calls = [item.unalias() for item in select.expressions if isinstance(item.unalias(), exp.Anonymous)]
        word = next((call for call in calls if call.name.upper() in RELATION_OPERATORS), None)
        if word is None:
            return
        if select.expressions != [word]:
            spot, shown = place(self.sql, offset_of(word) or 0), word.name.upper()
            message, remedy = f"{shown} around a part of the select list", f"write it around all: {shown}(a, b AS c)"
            raise LanguageError(message, place=spot, remedy=remedy)
        self._relate(select, word, self.sql)
        select.set("expressions", word.expressions)

    def _relate(self, tree: exp.Expr | None, word: Token | exp.Anonymous, sql: str) -> None:
        """Note a relation operator at its SELECT; raises LanguageError where it has one, or is not a SELECT."""
        start = word.start if isinstance(word, Token) else offset_of(word) or 0
        name = word.text if isinstance(word, Token) else word.name
        if not isinstance(tree, exp.Select):
            remedy = "write it around each SELECT"
            raise LanguageError(
                f"{name.upper()} must be around a single SELECT", place=place(sql, start), remedy=remedy
            )
        if tree.args.get("relation") is not None:
            raise LanguageError(
                "a query cannot have a second relation operator", place=place(sql, start), remedy="keep one"
            )
        tree.set("relation", (name.lower(), start))

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        begin = self._curr.start if self._curr else 0
        table: exp.Expr | None = self._window_function()
        if table is not None:
            table.set("alias", self._parse_table_alias(alias_tokens or self.TABLE_ALIAS_TOKENS))
        else:
            table = super()._parse_table(
                schema, joins, alias_tokens, parse_bracket, is_db_reference, parse_partition, consume_pipe
            )
        offsets = sorted(offset for offset in self._windows if offset >= begin)
        if len(offsets) > 1 or (offsets and table is None):
            raise self._no_stream(offsets[-1])
        if table is not None and offsets:
            table.set("window", self._windows.pop(offsets[0]))
        return table

    def _no_stream(self, offset: int) -> LanguageError:
        remedy = "write a window after each stream; for a query in WITH or brackets, after its name in FROM"
        return LanguageError("a window must belong to a stream", place=place(self.sql, offset), remedy=remedy)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        self._window()
        alias = None if self._begins_duration("EVERY") else super()._parse_table_alias(alias_tokens)
        self._window()
        return alias

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        word = self._next.text.upper() if self._next else ""
        if isinstance(this, exp.Table) or (this is not None and word in ("RANGE", "ROWS", "NOW")):
            self._window()
            return this
        begin = self._curr
        try:
            return super()._parse_bracket(this)
        except AttributeError as error:  # The parser's own, of x[FLOOR()]: it looks for the type of a subscript.
            message = "the query is not SQL: a function in a subscript lacks an argument"
            raise self._refused(begin, message, SHAPE) from error

    def _parse_query_modifiers(self, this):  # type: ignore[no-untyped-def]
        this = super()._parse_query_modifiers(this)
        while isinstance(this, exp.Select) and self._clause(this):
            this = super()._parse_query_modifiers(this)
        return this

    def _parse_select_query(self, *args: Any, **options: Any) -> exp.Expr | None:
        begin = self._curr
        select = super()._parse_select_query(*args, **options)
        if isinstance(select, exp.Select) and begin:
            select.meta.setdefault("begin", begin.start)
            self._take_relation(select)
        return select

    def parse_set_operation(self, this: exp.Expr | None, *args: Any, **options: Any) -> exp.SetOperation | None:
        operator, follower = self._curr, self._next
        if this is not None and operator.token_type == TokenType.EXCEPT and follower.token_type not in _BEGINS_SELECT:
            raise self._refused(operator, "EXCEPT is not part of the language", "write FROM a EXCEPT ON (columns) b")
        if this is not None and operator.token_type in _OPERATIONS:
            quantified = follower.token_type in (TokenType.ALL, TokenType.DISTINCT)
            after = self._tokens[self._index + 2 : self._index + 3] if quantified else [follower]
            if not after or not after[0] or after[0].token_type in _OPERATIONS:
                words = " ".join(token.text.upper() for token in (operator, follower)[: 1 + quantified])
                raise self._refused(
                    operator, f"no SELECT follows {words}", f"write a SELECT after {words}, or leave {words} out"
                )
        operation = super().parse_set_operation(this, *args, **options)
        if operation is not None:
            operation.meta["operator"] = operator.start
        return operation

    def _parse_window_clause(self) -> list[exp.Expr] | None:
        # WINDOW name AS (...) is SQL's; WINDOW duration is read after all others.
        return None if self._begins_duration("WINDOW") else super()._parse_window_clause()

    def _clause(self, select: exp.Select) -> bool:
        if self._match_pair(TokenType.EXCEPT, TokenType.ON):
            select.set("subtrahends", (*(select.args.get("subtrahends") or ()), self._subtrahend()))
            return True
        word, token = self._curr.text.upper(), self._curr
        if not self._begins_duration("WINDOW") and not self._begins_duration("EVERY"):
            return False
        self._advance()
        size = self._duration(word)
        if select.args.get(word.lower()) is not None:
            raise self._refused(token, f"{word} is given twice", f"keep one {word}")
        if word == "WINDOW":
            select.set("window", WindowClause(token.start, Window("range", size)))
        elif size == 0:
            raise self._refused(token, "EVERY 0 would ask for endless answers", "use a duration above zero")
        else:
            select.set("every", (size, token.start))
        return True

    def _begins_duration(self, word: str) -> bool:
        """Return whether a word begins a clause here that ends in a duration, and is not a mere name."""
        if self._curr.text.upper() != word or self._curr.token_type == TokenType.IDENTIFIER:
            return False
        follower = self._next
        if not follower or follower.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH):
            return True
        after = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else None
        return follower.token_type == TokenType.VAR and (after is None or after.token_type != TokenType.ALIAS)

    def _window(self) -> None:
        """Read a window, `[RANGE duration]`, `[ROWS number]` or `[NOW]`, if one begins here."""
        if not self._match(TokenType.L_BRACKET):
            return
        opened, kind = self._prev, self._take("RANGE or ROWS")
        word = kind.text.upper()
        if word == "NOW":
            window = Window("range", 0)
        elif word == "RANGE":
            window = Window("range", self._duration("RANGE"))
        elif word == "ROWS":
            number = self._count("ROWS", kind)
            if not number.isdecimal() or len(number) > 19 or not 0 < int(number) < 2**62:
                raise self._refused(kind, f"ROWS cannot keep {number} rows", "use a whole number of at least 1")
            window = Window("rows", int(number))
        else:
            raise self._refused(kind, f"unknown window {kind.text!r}", WINDOW_REMEDY)
        if not self._match(TokenType.R_BRACKET):
            raise self._refused(self._curr, "a ] is missing at the end of the window", WINDOW_REMEDY)
        self._windows[opened.start] = WindowClause(opened.start, window)

    def _count(self, what: str, kind: Token) -> str:
        sign = "-" if self._match(TokenType.DASH) else ""
        self._match(TokenType.PLUS)
        if not self._match_set((TokenType.NUMBER, TokenType.STRING)):
            raise self._refused(self._curr or kind, f"{what} needs a number", f"write {what} 20{_UNIT.get(what, '')}")
        return sign + str(self._prev.text)

    def _duration(self, what: str) -> int:
        kind = self._prev
        self._match(TokenType.INTERVAL)
        first = self._curr
        text = self._count(what, kind)
        if self._curr and self._curr.text.isalpha() and " " not in first.text.strip():
            text += f" {self._curr.text}"
            self._advance()
        try:
            return parse_duration(text, what=what)
        except LanguageError as error:
            raise self._refused(first or kind, error.message, error.remedy) from error

    def _subtrahend(self) -> Subtrahend:
        self._take("'(' and columns", TokenType.L_PAREN)
        columns: list[tuple[str, int]] = []
        while True:
            name = self._take("a column")
            columns.append((name.text, name.start))
            if self._take("',' or ')'", TokenType.COMMA, TokenType.R_PAREN).token_type == TokenType.R_PAREN:
                break
        stream = self._take("a stream")
        alias, window = stream.text, None
        while True:
            begin = self._curr.start if self._curr else 0
            if self._curr.token_type == TokenType.L_BRACKET and window is None:
                self._window()
                window = self._windows.pop(begin)
            elif self._match(TokenType.ALIAS):
                continue
            elif self._curr.token_type in _NAMES and self._curr.text.upper() != "EVERY":
                alias = self._take("an alias").text
            else:
                return Subtrahend(tuple(columns), stream.text, alias, stream.start, window)

    def _window_function(self) -> exp.Table | None:
        """Read `TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL ...))` or `TUMBLE(s, ts, INTERVAL ...)`, if it begins
        here.
        """
        begin, ahead = self._curr, self._tokens[self._index : self._index + 4]
        within = [token.text.upper() for token in (*ahead[:2], *ahead[3:])] == ["TABLE", "(", "("]
        alone = [token.text.upper() for token in ahead[:2]] in ([name, "("] for name in WINDOW_FUNCTIONS)
        if not within and not alone:
            return None
        word = ahead[2] if within else begin
        self._advance(4 if within else 2)
        stream, partition, arguments = None, list[str](), list[exp.Expr]()
        while True:
            if self._next and self._next.token_type == TokenType.FARROW:
                self._advance(2)
            if self._match(TokenType.TABLE):
                stream = self._parse_id_var()
                by = self._match(TokenType.PARTITION_BY)
                while by and self._curr and self._curr.text.upper() != "DESCRIPTOR":
                    if self._curr.token_type in _NAMES and self._next.token_type != TokenType.FARROW:
                        text, quoted = self._curr.text, self._curr.token_type == TokenType.IDENTIFIER
                        partition.append(text if quoted else text.upper())
                    elif self._next and self._next.token_type == TokenType.FARROW:
                        break
                    self._advance()
                if by:
                    continue
            elif stream is None and self._curr.token_type in _NAMES and self._next.token_type == TokenType.COMMA:
                stream = self._parse_id_var()
            elif self._match_text_seq("DESCRIPTOR", "("):
                arguments.append(self.expression(exp.Column(this=self._parse_id_var())))
                self._match_r_paren()
            else:
                arguments.append(self._parse_assignment() or exp.Null())
            if not self._match(TokenType.COMMA):
                break
        if stream is None or not arguments or not isinstance(arguments[0], exp.Column):
            shown = f"{word.text.upper()}(...)"
            raise self._refused(begin, f"{f'TABLE({shown})' if within else shown} names no stream", _TABLE_SHAPE)
        self._match_r_paren()
        if within:
            self._match_r_paren()
        call = exp.Anonymous(this=word.text, expressions=arguments).update_positions(word)
        return exp.Table(this=stream, windowed=WindowFunction(call, tuple(partition)))

    def _take(self, what: str, *kinds: TokenType) -> Token:
        token = self._curr
        if not token or (kinds and token.token_type not in kinds):
            raise self._refused(
                token, f"expected {what}", f"{WINDOW_REMEDY}; or write EXCEPT ON (columns) stream [window]"
            )
        self._advance()
        return token

    def _refused(self, token: Token | None, message: str, remedy: str) -> LanguageError:
        offset = token.start if token else len(self.sql.rstrip())
        return LanguageError(message, place=place(self.sql, offset), remedy=remedy)


class _Generator(DuckDBGenerator):
    TRANSFORMS: ClassVar = {
        **DuckDBGenerator.TRANSFORMS,
        exp.Initcap: lambda self, node: self.func("INITCAP", node.this),
        exp.IgnoreNulls: lambda self, node: (
            self.sql(node, "this") if isinstance(node.this, exp.AnyValue) else self.ignorenulls_sql(node)
        ),
    }

    def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
        windowed: WindowFunction | None = expression.args.get("windowed")
        if windowed is None:
            return super().table_sql(expression, sep) + _window_text(expression)
        time, *sizes = (self.sql(one) for one in windowed.call.expressions)
        by = "".join(f'{", " if at else " PARTITION BY "}"{name}"' for at, name in enumerate(windowed.partition))
        given = ", ".join([f"TABLE {self.sql(expression.this)}{by}", f"DESCRIPTOR({time})", *sizes])
        return f"TABLE({windowed.call.name}({given})){sep if expression.alias else ''}{self.sql(expression, 'alias')}"

    def subquery_sql(self, expression: exp.Subquery, sep: str = " AS ") -> str:
        return super().subquery_sql(expression, sep) + _window_text(expression)

    def select_sql(self, expression: exp.Select) -> str:
        window, every = expression.args.get("window"), expression.args.get("every")
        if (relation := expression.args.get("relation")) is not None:
            expression = expression.copy()
            called = exp.Anonymous(this=relation[0].upper(), expressions=expression.expressions)
            expression.set("relation", None)
            expression.set("expressions", [called])
        text = super().select_sql(expression)
        text += "".join(map(_subtrahend_text, expression.args.get("subtrahends") or ()))
        text += "" if window is None else f" WINDOW {_in_words(window.window.size)}"
        return text if every is None else f"{text} EVERY {_in_words(every[0])}"


def _window_text(node: exp.Expr) -> str:
    clause: WindowClause | None = node.args.get("window")
    if clause is None:
        return ""
    size = clause.window.size
    if clause.window.kind == "rows":
        return f" [ROWS {size}]"
    return f" [RANGE {_in_words(size)}]" if size else " [NOW]"


def _in_words(size: int) -> str:
    units = ("day", "hour", "minute", "second", "millisecond", "microsecond")
    unit = next(one for one in units if size % MICROSECONDS[one] == 0)
    count = size // MICROSECONDS[unit]
    return f"{count} {unit.upper()}{'' if count == 1 else 'S'}"


def _subtrahend_text(clause: Subtrahend) -> str:
    names = ", ".join(f'"{name}"' for name, _ in clause.columns)
    window = "" if clause.window is None else _window_text(exp.Table(window=clause.window))
    return f' EXCEPT ON ({names}) "{clause.stream}" AS "{clause.alias}"{window}'


class _Tokenizer(DuckDB.Tokenizer):
    IDENTIFIERS: ClassVar = ['"', "`"]
    KEYWORDS: ClassVar = {**DuckDB.Tokenizer.KEYWORDS, "MATCH_CONDITION": TokenType.MATCH_CONDITION}


class Midstream(DuckDB):
    """The dialect. Names stand in double quotes, or in backticks as Spark's users write them."""

    Tokenizer = _Tokenizer
    Parser = _Parser
    Generator = _Generator
