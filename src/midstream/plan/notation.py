"""Plan notation: `(((A B) C) D)`, `[A: B C | B: A C | C: A B]`, `eddy(A B C)` and `stairs(((A B) C))`."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec

from midstream.logical.query import Query
from midstream.model.errors import PlanError
from midstream.model.frozen import kept_with, make_room
from midstream.model.words import suggest
from midstream.plan.tree import Eddy, Form, Join, Leaf, MultiJoin, Plan
from midstream.sql.place import place
from midstream.sql.scope import find_name

PARSED = 64  # so many plans are remembered with a query
_TOKEN = re.compile(r"\s*([()\[\]:|,]|\"(?:[^\"]|\"\")+\"|[^\s()\[\]:|,\"]+)")
_CALL = re.compile(r"\s*([^\s()\[\]:|,\"]+)\s*[(:]")
_REMEDY = (
    "write a tree of pairs such as ((A B) C), probing orders such as [A: B C | B: A C | C: A B], "
    "an eddy such as eddy(A B C), or stairs(((A B) C))"
)
_POLICIES = " or ".join(f"eddy:{policy}(A B C)" for policy in Eddy.policies)


@lru_cache(maxsize=1)
def form_names() -> frozenset[str]:
    """List the words that may precede a tree: of files `WORD_form.py` among the forms, and of entry points.

    >>> "stairs" in form_names()
    True
    """
    room = find_spec("midstream.operators.forms")
    own = pkgutil.iter_modules(room.submodule_search_locations if room else None)
    return frozenset(
        {*(module.name.removesuffix("_form") for module in own), *entry_points(group="midstream.operators").names}
    )


def parse_plan(text: object, query: Query) -> Plan:
    """Parse the notation of a plan, which must name each source of the query exactly once.

    Raises PlanError with the place. In the plan of a difference the minuend stands leftmost in a left-deep tree.

    >>> from midstream.logical.query import Source
    >>> query = Query("", tuple(Source(a, a, None) for a in "ABC"), (), (), ())
    >>> parse_plan("(A (B C))", query).notation()
    '(A (B C))'
    """
    parsed = kept_with(query, "_parsed", lambda _: dict[object, Plan]())  # A review asks for some plans many times.
    if not isinstance(text, str) or text not in parsed:
        plan, faults = read_plan(text, query)
        if faults or plan is None:
            raise faults[0]
        make_room(parsed, PARSED)
        parsed[text] = plan
    return parsed[text]


def read_plan(text: object, query: Query) -> tuple[Plan | None, list[PlanError]]:
    """Parse the notation of a plan as far as possible.

    Returns: the plan, and all its faults in the order of the text. The plan is None where the parser had to stop.

    >>> from midstream.logical.query import Source
    >>> query = Query("", tuple(Source(a, a, None) for a in "ABC"), (), (), ())
    >>> [fault.message for fault in read_plan("((A X) (B A))", query)[1]]
    ["unknown source 'X'", 'A is named twice']
    """
    if not isinstance(text, str):
        remedy = f"write a string: {default_plan(query).notation()!r}"
        return None, [PlanError(f"{text!r} is not a plan", place="plan", remedy=remedy)]
    notation = _Notation(text, query)
    try:
        return notation.run(), notation.faults
    except PlanError as error:
        return None, [*notation.faults, error]


def word_before(notation: str) -> str:
    """Return the word before a plan's brackets: that of an eddy or a form, empty for trees and probing orders.

    >>> [word_before(plan) for plan in ("eddy:lottery(A B C)", "stairs((A B))", "(A B)", "[A: B | B: A]")]
    ['eddy', 'stairs', '', '']
    """
    called = _CALL.match(notation)
    return called[1] if called else ""


def default_plan(query: Query) -> Plan:
    """Build the left-deep plan in FROM order, changed only where another order avoids a cross product.

    >>> from midstream.logical.query import Source
    >>> default_plan(Query("", tuple(Source(a, a, None) for a in "ABC"), (), (), ())).notation()
    '((A B) C)'
    """
    waiting = list(query.aliases)
    plan: Plan = Leaf(waiting.pop(0))
    while waiting:
        joined = set(plan.aliases())
        following = next((a for a in waiting if _tied(query, joined, a)), waiting[0])
        waiting.remove(following)
        plan = Join(plan, Leaf(following))
    return plan


def _tied(query: Query, joined: Iterable[str], alias: str) -> bool:
    known = {*joined, alias}
    # A predicate can be checked once the last of its sources is joined.
    return any(alias in p.aliases() and p.aliases() <= known for p in query.predicates)


class _Notation:
    def __init__(self, text: str, query: Query) -> None:
        self.text, self.query, self.at = text, query, 0
        self.tokens = [(m[1], m.start(1)) for m in _TOKEN.finditer(text)]
        self.seen: dict[str, int] = {}
        self.faults: list[PlanError] = []
        self.has_other_names = False

    def run(self) -> Plan:
        if not self.tokens:
            raise self.error("the plan is empty", 0)
        # No tree goes on behind a source's name, so a source may be called eddy or stairs.
        called = _CALL.match(self.text)
        word = called[1].lower() if called else ""
        if word == "eddy":
            plan = self.eddy()
        elif word in form_names():
            plan = self.form(word)
        else:
            plan = self.orders() if self.peek() == "[" else self.tree()
        if self.at < len(self.tokens):
            raise self.error(f"the plan should end before {self.peek()!r}", self.tokens[self.at][1])
        missing = [a for a in self.query.aliases if a not in self.seen]
        if missing and not self.has_other_names:  # A wrong name may stand for a missing one.
            raise self.error(f"the plan lacks {', '.join(missing)}", len(self.text), "name every source exactly once")
        top = self.query.on_top
        if top is not None and top.begins_with is not None and not self.faults:
            self.check_difference(plan, top.begins_with)
        return plan

    def check_difference(self, plan: Plan, minuend: str) -> None:
        spine = plan
        while isinstance(spine, Join) and isinstance(spine.right, Leaf):
            spine = spine.left
        if spine != Leaf(minuend):
            example = default_plan(self.query).notation()
            raise self.error(
                f"the plan of a difference must be left-deep and begin with {minuend}",
                0,
                f"write a plan such as {example}",
            )

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> tuple[str, int]:
        token, offset = self.tokens[self.at] if self.at < len(self.tokens) else ("", len(self.text))
        if not token or (expected and token != expected):
            found = repr(token) if token else "the end"
            raise self.error(f"expected {repr(expected) if expected else 'a source'}, found {found}", offset)
        self.at += 1
        return token, offset

    def error(self, message: str, offset: int, remedy: str = _REMEDY) -> PlanError:
        return PlanError(message, place=f"plan, {place(self.text, offset)}", remedy=remedy)

    def note(self, message: str, offset: int, remedy: str) -> None:
        self.faults.append(self.error(message, offset, remedy))

    def source(self) -> tuple[str, int]:
        token, offset = self.take()
        if token in "()[]:|,":
            raise self.error(f"expected a source, found {token!r}", offset)
        name = token[1:-1].replace('""', '"') if token.startswith('"') else token
        found = find_name(name, self.query.aliases)
        if len(found) != 1:
            self.note(f"unknown source {name!r}", offset, suggest(name, self.query.aliases))
            self.has_other_names = True
            return "", offset
        return found[0], offset

    def once(self) -> str:
        alias, offset = self.source()
        if alias in self.seen:
            self.note(f"{alias} is named twice", offset, "name every source exactly once")
            self.has_other_names = True
        if alias:
            self.seen[alias] = offset
        return alias

    def tree(self) -> Plan:
        if self.peek() != "(":
            return Leaf(self.once())
        _, opened = self.take("(")
        left = self.tree()
        if self.peek() == ")":
            raise self.error("a pair needs two parts", opened)
        right = self.tree()
        if self.peek() not in (")", ""):
            raise self.error("a pair cannot have a third part", self.tokens[self.at][1])
        self.take(")")
        return Join(left, right)

    def eddy(self) -> Plan:
        self.take()
        policy = self.policy() if self.peek() == ":" else Eddy.policies[0]
        _, opened = self.take("(")
        sources: list[str] = []
        while self.peek() not in (")", ""):
            sources.append(self.once())
        self.take(")")
        if len(sources) < 2 and len(self.query.aliases) < 2:
            raise self.error("an eddy must route between at least two sources", opened, "write the source's name alone")
        return Eddy(tuple(sources), policy)

    def policy(self) -> str:
        self.take(":")
        name, offset = self.take()
        if name.lower() not in Eddy.policies:
            self.note(f"an eddy cannot route by {name!r}", offset, f"write {_POLICIES}")
        return name.lower()

    def form(self, name: str) -> Plan:
        self.take()
        self.take("(")
        inner = self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)
        if self.peek() != "(":
            example = f"write a plan such as {name}({default_plan(self.query).notation()})"
            raise self.error(f"{name} needs a tree of pairs", inner, example)
        tree = self.tree()
        self.take(")")
        return Form(name, tree)

    def orders(self) -> Plan:
        self.take("[")
        orders: list[tuple[str, tuple[str, ...]]] = []
        while True:
            alias = self.once()
            self.take(":")
            order: list[str] = []
            while self.peek() not in ("|", "]", ""):
                other, offset = self.source()
                if other and (other == alias or other in order):
                    self.note(f"{other} is probed twice by {alias}", offset, "name every other source once")
                order.append(other)
            missing = [a for a in self.query.aliases if a != alias and a not in order]
            if alias and missing and "" not in order:
                message = f"{alias} does not probe {', '.join(missing)}"
                self.note(message, self.seen[alias], "name every other source once")
            orders.append((alias, tuple(order)))
            if self.take("|" if self.peek() == "|" else "]")[0] == "]":
                return MultiJoin(tuple(orders))
