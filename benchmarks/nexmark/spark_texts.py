"""NEXMark's queries in Spark's streaming SQL, append mode; what is not here Spark refuses in any form known to us.

Windows and times are those of the job files under `examples/nexmark`. Where Spark allows only one event-time column,
as in W1's second join, another one is turned into a plain one.
"""

from __future__ import annotations

TENS = "window(ts, '10 seconds')"
HOUR = "{0}.ts BETWEEN {1}.ts - INTERVAL 1 HOUR AND {1}.ts + INTERVAL 1 HOUR"

OFFERS = """auction a JOIN bid b ON a.id = b.auction AND b.ts >= a.ts AND b.ts <= a.ts + INTERVAL {} SECONDS
            WHERE b.ts <= a.expires"""

SPARK = {
    "q0": "SELECT auction, bidder, price, ts FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, ts FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": f"""
        SELECT p.name, p.city, p.state, a.id
        FROM auction a JOIN person p ON a.seller = p.id AND {HOUR.format("a", "p")}
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": f"""
        WITH offers AS (SELECT a.id, a.category, b.price, b.ts FROM {OFFERS.format(20)}),
        bests AS (SELECT id, category, max(price) AS best, window FROM offers GROUP BY id, category, {TENS})
        SELECT category, avg(best) AS average, window.end AS window_end FROM bests GROUP BY category, window""",
    "q5": """
        WITH counts AS (
            SELECT auction, count(*) AS num, window FROM bid GROUP BY auction, window(ts, '10 seconds', '2 seconds')),
        most AS (SELECT max(num) AS num, window FROM counts GROUP BY window)
        SELECT c.auction, c.num, c.window.end AS ended
        FROM counts c JOIN most m ON c.window = m.window AND c.num = m.num""",
    "q7": f"""
        WITH most AS (SELECT max(price) AS price, window FROM bid GROUP BY {TENS})
        SELECT b.auction, b.price, b.bidder, b.ts
        FROM bid b JOIN most ON b.price = most.price AND b.ts >= most.window.start AND b.ts < most.window.end""",
    "q8": f"""
        SELECT p.id, p.name, p.window.start AS began
        FROM (SELECT id, name, window FROM person GROUP BY id, name, {TENS}) p
        JOIN (SELECT seller, window FROM auction GROUP BY seller, {TENS}) a
            ON p.id = a.seller AND p.window = a.window""",
    "q10": """
        SELECT auction, bidder, price, ts, date_format(ts, 'yyyy-MM-dd') AS day, date_format(ts, 'HH:mm') AS minute
        FROM bid""",
    "q11": """
        SELECT bidder, count(*) AS bids, session_window.start AS window_start, session_window.end AS window_end
        FROM bid GROUP BY bidder, session_window(ts, '2 seconds')""",
    "q12": f"""
        SELECT bidder, count(*) AS bids, window.start AS window_start, window.end AS window_end
        FROM bid GROUP BY bidder, {TENS}""",
    "q13": """
        SELECT b.auction, b.bidder, b.price, b.ts, s.value
        FROM bid b JOIN side_input s ON b.auction % 10000 = s.key""",
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price,
            CASE WHEN hour(ts) >= 8 AND hour(ts) <= 18 THEN 'dayTime'
                WHEN hour(ts) <= 6 OR hour(ts) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS time_of_day,
            length(url) - length(replace(url, 'c', '')) AS letters
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""
        SELECT window.start AS window_start, count(*) AS bids,
            count(*) FILTER (WHERE price < 10000) AS low,
            count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle,
            count(*) FILTER (WHERE price >= 1000000) AS high,
            size(collect_set(bidder)) AS bidders,
            size(collect_set(bidder) FILTER (WHERE price < 10000)) AS low_bidders,
            size(collect_set(auction)) AS auctions,
            size(collect_set(auction) FILTER (WHERE price >= 1000000)) AS high_auctions
        FROM bid GROUP BY {TENS}""",
    "q16": f"""
        SELECT channel, window.start AS window_start, count(*) AS bids, max(ts) AS latest,
            count(*) FILTER (WHERE price < 10000) AS low,
            size(collect_set(bidder)) AS bidders, size(collect_set(auction)) AS auctions
        FROM bid GROUP BY channel, {TENS}""",
    "q17": f"""
        SELECT auction, window.start AS window_start, count(*) AS bids, count(*) FILTER (WHERE price < 10000) AS low,
            min(price) AS least, max(price) AS greatest, avg(price) AS average, sum(price) AS total
        FROM bid GROUP BY auction, {TENS}""",
    "q20": f"""
        SELECT b.auction, b.bidder, b.price, b.channel, b.ts AS at, a.item_name, a.initial_bid, a.reserve, a.expires,
            a.seller
        FROM bid b JOIN auction a ON b.auction = a.id AND {HOUR.format("b", "a")}
        WHERE a.category = 10""",
    "q21": """
        SELECT auction, bidder, price, channel,
            CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
                WHEN 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
        FROM bid
        WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
            OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
        SELECT auction, bidder, price, channel,
            split(url, '/')[3] AS dir1, split(url, '/')[4] AS dir2, split(url, '/')[5] AS dir3
        FROM bid""",
    "q23": f"""
        WITH sold AS (
            SELECT b.auction, b.bidder, b.price, a.category, a.seller, b.ts,
                timestamp_micros(unix_micros(a.ts)) AS opened
            FROM bid b JOIN auction a ON b.auction = a.id AND {HOUR.format("b", "a")})
        SELECT s.auction, s.bidder, s.price, s.category, s.seller, p.name, p.city
        FROM sold s JOIN person p ON s.seller = p.id AND {HOUR.format("p", "s")}
            AND p.ts BETWEEN s.opened - INTERVAL 1 HOUR AND s.opened + INTERVAL 1 HOUR""",
}
"""What is measured, by query."""

NUMBERED = "ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS number"

AS_WRITTEN = {
    "q6": f"""
        WITH sold AS (
            SELECT a.seller, a.id, max(b.price) AS best, window.end AS t
            FROM {OFFERS.format(10)} GROUP BY a.seller, a.id, window(b.ts, '10 seconds')),
        numbered AS (SELECT seller, best, t, {NUMBERED.format("seller", "t DESC, best DESC")} FROM sold)
        SELECT seller, avg(best) AS average FROM numbered WHERE number <= 10 GROUP BY seller""",
    "q9": f"""
        SELECT id, seller, auction, bidder, price, at FROM (
            SELECT a.id, a.seller, b.auction, b.bidder, b.price, b.ts AS at,
                {NUMBERED.format("a.id", "b.price DESC, b.ts")}
            FROM {OFFERS.format(10)}) WHERE number <= 1""",
    "q15": f"SELECT window.start, count(*) AS bids, count(DISTINCT bidder) AS bidders FROM bid GROUP BY {TENS}",
    "q16": f"SELECT channel, window.start, count(DISTINCT bidder) AS bidders FROM bid GROUP BY channel, {TENS}",
    "q18": f"""
        SELECT auction, bidder, price, ts
        FROM (SELECT *, {NUMBERED.format("bidder, auction", "ts DESC")} FROM bid) WHERE number = 1""",
    "q19": f"""
        SELECT * FROM (SELECT auction, bidder, price, ts, {NUMBERED.format("window, auction", "price DESC")}
            FROM (SELECT *, {TENS} AS window FROM bid)) WHERE number <= 10""",
}
"""What Spark refuses, by query; of those that stand above too the rewrite is measured that its users fall back on."""
