"""Outer, semi and anti joins as tests say them; the CQL text and the oracle's SQL are both rendered from it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.oracle.spec import SECOND, QuerySpec, duration

OUTER = {"LEFT JOIN": "LEFT", "LEFT OUTER JOIN": "LEFT", "RIGHT JOIN": "RIGHT", "FULL JOIN": "FULL"}
SEMI = ("SEMI JOIN", "LEFT SEMI JOIN", "EXISTS", "IN")
ANTI = ("ANTI JOIN", "LEFT ANTI JOIN", "NOT EXISTS", "NOT IN")


@dataclass(frozen=True)
class OuterSpec(QuerySpec):
    """An outer, semi or anti join of A and B; `where` are its ON conditions, `after` stands in WHERE.

    `windows` are those of A and B. With `interval` they are said by a condition between the timestamps; with `inner`,
    the column of A and B that IN compares, the form is IN or NOT IN; of those `known`, such as "AB", it is not NULL.
    """

    written: str = "LEFT JOIN"
    windows: tuple[int, int] = (SECOND, SECOND)
    interval: bool = False
    after: tuple[str, ...] = ()
    inner: str = ""
    known: str = ""

    def cql(self) -> str:
        """The text in one of the ways in which users write it."""
        a, b = (f"{name} [RANGE {duration(size)}]" for name, size in zip("AB", self.windows, strict=True))
        on = [f"({c.text})" for c in self.where]
        if self.interval:
            low, high = (duration(size) for size in self.windows)
            a, b, on = "A", "B", [*on, f"A.ts BETWEEN B.ts - INTERVAL {low} AND B.ts + INTERVAL {high}"]
        items, after = ", ".join(item.cql() for item in self.select), list(self.after)
        if "JOIN" in self.written:
            tail = f" WHERE {' AND '.join(after)}" if after else ""
            return f"SELECT {items} FROM {a} {self.written} {b} ON {' AND '.join(on) or 'TRUE'}{tail}"
        on += [f"{self.inner} IS NOT NULL"] if "B" in self.known else []
        after += [f"A.{self.inner} IS NOT NULL"] if "A" in self.known else []
        inside = f" WHERE {' AND '.join(on)}" if on else ""
        asked = f"{self.written} (SELECT 1 FROM {b}{inside})"
        if self.inner:
            asked = f"{self.inner} {self.written} (SELECT {self.inner} FROM {b}{inside})"
        return f"SELECT {items} FROM {a} WHERE {' AND '.join([*after, asked])}"

    def sql(self, a: str, b: str) -> tuple[str, str]:
        """For the oracle, which reads A and B in `a` and `b`, the time and the step of each result, and FROM.

        The step is NULL where it is the one in which the watermark passes the time.
        """
        (wide, other), both = self.windows, "greatest(A.__ts, B.__ts)"
        on = [f"({c.sql or c.text})" for c in self.where]
        on += [f"{both} - A.__ts <= {wide}", f"{both} - B.__ts <= {other}"]
        on += [f"B.{self.inner} IS NOT NULL"] if "B" in self.known else []
        after = [f"({text})" for text in self.after]
        after += [f"A.{self.inner} IS NOT NULL"] if "A" in self.known else []
        if self.written in OUTER:
            alone = f"WHEN B.__ts IS NULL THEN A.__ts + {wide} WHEN A.__ts IS NULL THEN B.__ts + {other}"
            step = "CASE WHEN A.__ts IS NOT NULL AND B.__ts IS NOT NULL THEN greatest(A.__step, B.__step) END"
            joined = f"{a} AS A {OUTER[self.written]} JOIN {b} AS B ON {' AND '.join(on)}"
            return f"CASE {alone} ELSE {both} END AS t, {step} AS step", f"FROM {joined}{_where(after)}"
        if self.written in SEMI:
            on += [f"A.{self.inner} = B.{self.inner}"] if self.inner else []
            pairs = f"{a} AS A, {b} AS B WHERE {' AND '.join(on)}"
            first = f"(SELECT A.__arrival AS id, min({both}) AS first FROM {pairs} GROUP BY A.__arrival) AS found"
            joined = f"{a} AS A JOIN {first} ON found.id = A.__arrival"
            return "found.first AS t, NULL AS step", f"FROM {joined}{_where(after)}"
        inside = f"SELECT {f'B.{self.inner}' if self.inner else '1'} FROM {b} AS B WHERE {' AND '.join(on)}"
        none = f"A.{self.inner} NOT IN ({inside})" if self.inner else f"NOT EXISTS ({inside})"
        return f"A.__ts + {wide} AS t, NULL AS step", f"FROM {a} AS A{_where([*after, none])}"


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
