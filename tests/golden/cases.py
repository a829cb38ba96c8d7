"""Golden cases as texts: reading them, and writing what midstream says of one.

A case begins with `##` and a title. Its head says what is asked, one line each: `query`, queries that run `also`, the
`sharing`, the `plan` and, if the query migrates, the `old` plan. What follows the head is what midstream says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import midstream as ms
from midstream.model.schema import StreamSchema
from midstream.plan.decompose import decompose, subplans
from midstream.plan.notation import parse_plan
from midstream.plan.signature import canonical, relabel_plan, signature
from midstream.runtime.lane_key import lane_key, spread_text
from midstream.sql.parse import parse_query
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec, Subtrahend

FOLDER = Path(__file__).parent
HEAD = re.compile(r"(query|also|sharing|plan|old): (.+)")
UNITS = {"HOURS": 3600 * SECOND, "SECONDS": SECOND, "MILLISECONDS": 1000, "MICROSECONDS": 1}


@dataclass(frozen=True)
class Golden:
    """A case as its file has it: what is asked, and what midstream is to say."""

    file: str
    title: str
    query: str
    also: tuple[str, ...]
    sharing: str
    plan: str
    old: str
    said: str

    @property
    def head(self) -> str:
        """The case without what midstream says."""
        lines = [f"## {self.title}", f"query: {self.query}", *(f"also: {text}" for text in self.also)]
        lines += [f"sharing: {self.sharing}"] if self.sharing != "off" else []
        return "\n".join([*lines, f"plan: {self.plan}", *([f"old: {self.old}"] if self.old else [])])

    def text(self, said: str) -> str:
        """The case as it stands in its file, with what midstream says of it."""
        return f"{self.head}\n\n{said}\n"


def golden_cases() -> Iterator[Golden]:
    """Every case of every file, in order."""
    for path in sorted(FOLDER.glob("*.txt")):
        for block in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            title, *lines = block.rstrip().split("\n")
            heads = [found for line in lines if (found := HEAD.fullmatch(line))]
            given = {found[1]: found[2] for found in heads}
            also = tuple(found[2] for found in heads if found[1] == "also")
            said = "\n".join(lines[len(heads) :]).strip("\n")
            sharing, old = given.get("sharing", "off"), given.get("old", "")
            yield Golden(path.name, title, given["query"], also, sharing, given["plan"], old, said)


def rewrite(case: Golden, said: str) -> None:
    """Put into the case's file what midstream says now."""
    path = FOLDER / case.file
    text = path.read_text(encoding="utf-8")
    begin = text.index(f"## {case.title}\n")
    end = text.find("\n## ", begin)
    rest = "" if end < 0 else text[end:]
    path.write_text(text[:begin] + case.text(said) + rest, encoding="utf-8")


def says(case: Golden, streams: tuple[StreamSpec, ...], engine: ms.Engine) -> str:
    """What midstream says of a case that has run: its tasks, lane key, states and `explain`."""
    schemas = {s.name: StreamSchema(s.name, s.schema, s.timestamp) for s in streams}
    query = parse_query(case.query, schemas)
    shared, labels = canonical(query)
    new = parse_plan(case.plan, query)
    parts = {}
    if case.old:
        old = parse_plan(case.old, query)
        tasks = decompose(old, new)
        parts["tasks"] = [f"{t.piece(old).notation()} -> {t.piece(new).notation()}" for t in tasks] or ["none"]
    key = spread_text(lane_key(shared))
    parts["lane key"] = [f"{stream}: {text}" for stream, text in key] or ["none: one lane"]
    named = [frozenset({label}) for label in sorted(labels.values())]
    joined = [sources for sources in subplans(relabel_plan(new, labels)) if len(sources) < len(named)]
    parts["states"] = []
    for sources in [*named, *joined]:
        held = signature(shared, sources, "")
        where = f" where {' and '.join(held.predicates)}" if held.predicates else ""
        parts["states"].append(f"{', '.join(held.inputs)}{where}")
    parts["explain"] = engine.explain("q0").split("\n")
    return "\n".join(f"{name}\n" + "\n".join(f"  {line}".rstrip() for line in lines) for name, lines in parts.items())


def spec_of(text: str) -> QuerySpec:
    """The oracle's reading of a query's text, which must be written as `QuerySpec.cql` writes it."""
    pattern = (
        r"SELECT (?P<items>.+?) FROM (?P<sources>.+?)(?P<parts>( EXCEPT ON .+?)*)( WHERE (?P<where>.+?))?"
        r"( GROUP BY (?P<groups>.+?))?( WINDOW (?P<window>\d+ [A-Z]+))?( EVERY (?P<every>\d+ [A-Z]+))?"
    )
    found = re.fullmatch(pattern, text)
    assert found is not None, f"not written as QuerySpec.cql writes it: {text}"
    sources = tuple(_source(part) for part in _split(found["sources"], ", "))
    parts = [part.partition(") ") for part in found["parts"].split(" EXCEPT ON (")[1:]]
    subtracted = tuple(Subtrahend(_source(source), tuple(columns.split(", "))) for columns, _, source in parts)
    aliases = [source.alias for source in (*sources, *(part.source for part in subtracted))]
    conditions = [part[1:-1] for part in _split(found["where"], " AND ")]
    spec = QuerySpec(
        sources,
        tuple(_item(part) for part in _split(found["items"], ", ")),
        tuple(Condition(c, tuple(a for a in aliases if re.search(rf"\b{a}\.", c))) for c in conditions),
        tuple(_split(found["groups"], ", ")),
        _duration(found["every"]),
        subtracted,
        _duration(found["window"]),
    )
    assert spec.cql() == text, f"not written as QuerySpec.cql writes it: {text}"
    return spec


def _split(text: str | None, between: str) -> list[str]:
    """A text in parts, not split within parentheses."""
    parts: list[str] = []
    for piece in (text or "").split(between) if text else []:
        if parts and parts[-1].count("(") > parts[-1].count(")"):
            parts[-1] += between + piece
        else:
            parts.append(piece)
    return parts


def _source(text: str) -> SourceSpec:
    found = re.fullmatch(r"(\w+)( \[RANGE (\d+ \w+)\])?( \[ROWS (\d+)\])?( AS (\w+))?", text)
    assert found is not None, text
    return SourceSpec(found[7] or found[1], found[1], _duration(found[3]), int(found[5]) if found[5] else None)


def _item(text: str) -> Item:
    value, _, name = text.partition(" AS ")
    return Item(value, name, "AVG" in value or ".d" in value)


def _duration(text: str | None) -> int | None:
    return int(text.split()[0]) * UNITS[text.split()[1]] if text else None
