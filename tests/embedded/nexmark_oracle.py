"""NEXMark's queries as SQL over all rows, for DuckDB: what the job files under `examples/nexmark` ask.

`BID`, `BOTH` and `COMERS` are how far streams have come together; windows that end later, and later instants, are not
answered yet.
"""

from __future__ import annotations

TEN = "time_bucket(INTERVAL 10 SECONDS, {})"
ENDED = "w + INTERVAL 10 SECONDS <= {}"

BID = "(SELECT max(ts) FROM bid)"
BOTH = "(SELECT least((SELECT max(ts) FROM bid), (SELECT max(ts) FROM auction)))"
COMERS = "(SELECT least((SELECT max(ts) FROM person), (SELECT max(ts) FROM auction)))"
INSTANTS = (
    "(SELECT unnest(generate_series(TIMESTAMP '2015-07-15', {mark} - INTERVAL 1 MICROSECOND, INTERVAL {every})) AS t)"
)
ALIVE = "{0}.ts <= t AND t - {0}.ts <= INTERVAL 10 SECONDS"
OPEN = "a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires"


def windowed(select: str, group: str = "") -> str:
    """An aggregate of bids by ten seconds."""
    by = f"GROUP BY w{', ' + group if group else ''}"
    return f"SELECT {select} FROM (SELECT *, {TEN.format('ts')} AS w FROM bid) AS bid WHERE {ENDED.format(BID)} {by}"


_OFFERS = f"SELECT a.id, a.category, b.price, {TEN.format('b.ts')} AS w FROM auction a, bid b WHERE {OPEN}"
_HOPS = f"""SELECT auction, count(*) AS num, s + INTERVAL 10 SECONDS AS ended
  FROM (SELECT *, unnest(generate_series(first, ts, INTERVAL 2 SECONDS)) AS s
        FROM (SELECT *, time_bucket(INTERVAL 2 SECONDS, ts) - INTERVAL 8 SECONDS AS first FROM bid))
  WHERE s + INTERVAL 10 SECONDS <= {BID} GROUP BY auction, s"""
_TENS = INSTANTS.format(mark=BOTH, every="10 SECONDS")
_SOLD = f"""SELECT a.seller, a.id, max(b.price) AS best, t FROM auction a, bid b, {_TENS}
  WHERE {OPEN} AND {ALIVE.format("a")} AND {ALIVE.format("b")} GROUP BY a.seller, a.id, t"""

SQL: dict[tuple[str, str], str] = {
    ("q0", "bids"): "SELECT auction, bidder, price, ts FROM bid",
    ("q1", "euros"): "SELECT auction, bidder, 0.908 * price, ts FROM bid",
    ("q2", "some"): "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    ("q3", "sellers"): "SELECT p.name, p.city, p.state, a.id FROM auction a, person p "
    "WHERE a.seller = p.id AND a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    ("q4", "prices"): f"""SELECT category, avg(best), w + INTERVAL 10 SECONDS
      FROM (SELECT id, category, w, max(price) AS best FROM ({_OFFERS}) GROUP BY ALL)
      WHERE {ENDED.format(BOTH)} GROUP BY category, w""",
    ("q5", "counts"): f"SELECT auction, num, ended, ended - INTERVAL 1 MICROSECOND FROM ({_HOPS})",
    ("q5", "most"): f"SELECT max(num), ended, ended - INTERVAL 1 MICROSECOND FROM ({_HOPS}) GROUP BY ended",
    ("q5", "hot"): f"SELECT auction, num, ended FROM ({_HOPS}) QUALIFY num = max(num) OVER (PARTITION BY ended)",
    ("q6", "sold"): _SOLD,
    ("q6", "averages"): f"""SELECT seller, avg(best), asked + INTERVAL 10 SECONDS FROM (
        SELECT seller, best, i.t AS asked FROM ({_SOLD}) AS sold, {_TENS} AS i
        WHERE sold.t <= i.t AND i.t - sold.t <= INTERVAL 1 MINUTE
        QUALIFY row_number() OVER (PARTITION BY i.t, seller ORDER BY sold.t DESC, best DESC) <= 10)
      WHERE asked + INTERVAL 10 SECONDS <= {BOTH} GROUP BY seller, asked""",
    ("q7", "highest"): f"""SELECT auction, price, bidder, ts FROM (SELECT *, {TEN.format("ts")} AS w FROM bid)
      WHERE {ENDED.format(BID)} QUALIFY price = max(price) OVER (PARTITION BY w)""",
    ("q8", "newcomers"): f"""SELECT DISTINCT p.id, p.name, w FROM (SELECT *, {TEN.format("ts")} AS w FROM person) AS p
      JOIN (SELECT seller, {TEN.format("ts")} AS w FROM auction) AS a USING (w)
      WHERE p.id = a.seller AND {ENDED.format(COMERS)}""",
    ("q9", "winning"): f"""SELECT a.id, a.seller, b.auction, b.bidder, b.price, b.ts FROM auction a, bid b, {_TENS}
      WHERE {OPEN} AND {ALIVE.format("a")} AND {ALIVE.format("b")}
      QUALIFY row_number() OVER (PARTITION BY a.id, t ORDER BY b.price DESC, b.ts, b.bidder) = 1""",
    ("q10", "log"): "SELECT auction, bidder, price, ts, strftime(ts, '%Y-%m-%d'), strftime(ts, '%H:%M') FROM bid",
    ("q11", "sessions"): f"""SELECT bidder, count(*), min(ts), max(ts) + INTERVAL 2 SECONDS AS ended FROM (
        SELECT *, sum(begins) OVER (PARTITION BY bidder ORDER BY ts) AS number FROM (
          SELECT *, CAST(coalesce(ts - lag(ts) OVER (PARTITION BY bidder ORDER BY ts) > INTERVAL 2 SECONDS, true)
            AS INTEGER) AS begins FROM bid))
      GROUP BY bidder, number HAVING ended < {BID}""",
    ("q12", "counts"): windowed("bidder, count(*), w, w + INTERVAL 10 SECONDS", "bidder"),
    ("q13", "enriched"): "SELECT auction, bidder, price, ts, value FROM bid JOIN side_input ON auction % 10000 = key",
    ("q14", "calculated"): """SELECT auction, bidder, 0.908 * price,
      CASE WHEN hour(ts) BETWEEN 8 AND 18 THEN 'dayTime' WHEN hour(ts) <= 6 OR hour(ts) >= 20 THEN 'nightTime'
      ELSE 'otherTime' END, length(url) - length(replace(url, 'c', ''))
      FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    ("q15", "statistics"): windowed(
        "w, count(*), count_if(price < 10000), count_if(price >= 10000 AND price < 1000000), "
        "count_if(price >= 1000000), count(DISTINCT bidder), count(DISTINCT CASE WHEN price < 10000 THEN bidder END), "
        "count(DISTINCT auction), count(DISTINCT CASE WHEN price >= 1000000 THEN auction END)"
    ),
    ("q16", "statistics"): windowed(
        "channel, w, count(*), max(ts), count_if(price < 10000), count(DISTINCT bidder), count(DISTINCT auction)",
        "channel",
    ),
    ("q17", "statistics"): windowed(
        "auction, w, count(*), count_if(price < 10000), min(price), max(price), avg(price), sum(price)", "auction"
    ),
    ("q18", "latest"): f"""SELECT auction, bidder, price, ts
      FROM bid, {INSTANTS.format(mark=BID, every="5 SECONDS")} WHERE {ALIVE.format("bid")}
      QUALIFY row_number() OVER (PARTITION BY bidder, auction, t ORDER BY ts DESC, price) = 1""",
    ("q19", "highest"): f"""SELECT auction, bidder, price, ts, n FROM (
        SELECT *, row_number() OVER (PARTITION BY w, auction ORDER BY price DESC, bidder, ts) AS n
        FROM (SELECT *, {TEN.format("ts")} AS w FROM bid)) WHERE n <= 10 AND {ENDED.format(BID)}""",
    ("q20", "expanded"): """SELECT b.auction, b.bidder, b.price, b.channel, b.ts, a.item_name, a.initial_bid, a.reserve,
      a.expires, a.seller FROM bid b, auction a WHERE b.auction = a.id AND a.category = 10""",
    ("q21", "channels"): r"""SELECT auction, bidder, price, channel, CASE channel WHEN 'Apple' THEN '0' WHEN 'Google'
      THEN '1' WHEN 'Facebook' THEN '2' WHEN 'Baidu' THEN '3' ELSE split_part(url, 'channel_id=', 2) END FROM bid""",
    ("q22", "directories"): """SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5),
      split_part(url, '/', 6) FROM bid""",
    ("q23", "sales"): """SELECT b.auction, b.bidder, b.price, a.category, a.seller, p.name, p.city
      FROM bid b, auction a, person p WHERE b.auction = a.id AND a.seller = p.id""",
}
"""By file and query."""
