"""A log of ten million exposures in one window, and the hour before, with all other logs.

A twentieth of the exposures is acted on: clicks, plays with a length, ratings and orders.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

USERS, ITEMS, CATEGORIES, LIST_LENGTH = 1_000_000, 100_000, 200, 10
SEGMENTS = 50
HOUR = "2026-01-02 10:00:00"
EARLIER = "2026-01-02 09:00:00"

# A uniform number in [0, 1) that depends on nothing but its seed, so that every run writes the same file.
_UNIFORM = "(hash({seed}) / 18446744073709551616.0)"


_ACTION = "hash(item_id, request_id) % 20"


def _zipf(n: int, seed: str) -> str:
    """A rank in [0, n) with a density near 1 / rank: n ^ u - 1, by inversion."""
    return f"CAST(floor(pow({n}, {_UNIFORM.format(seed=seed)}) - 1) AS BIGINT)"


def _exposures(rows: int, hour: str, salt: int) -> str:
    request = f"(i // {LIST_LENGTH})"
    requests = rows // LIST_LENGTH
    return f"""
        SELECT {salt}000000000 + {request} AS request_id,
               {_zipf(USERS, f"{request} * 31 + {salt}")} AS user_id,
               TIMESTAMP '{hour}' + to_microseconds(CAST({request} * (3600e6 / {requests}) AS BIGINT)) AS ts,
               {_zipf(ITEMS, f"i * 17 + {salt}")} AS item_id,
               CAST(i % {LIST_LENGTH} + 1 AS INTEGER) AS position,
               (1 - (i % {LIST_LENGTH}) / 20.0) * (0.5 + 0.5 * {_UNIFORM.format(seed=request)}) AS score,
               ['home', 'search', 'detail', 'cart', 'feed'][1 + {request} % 5] AS scene,
               CASE WHEN {request} % 5 = 2 THEN {_zipf(ITEMS, f"{request} * 13 + {salt}")} END AS page
        FROM range({rows}) AS numbers(i)
    """


def _feedback(exposures: Path) -> str:
    return f"""
        SELECT request_id, user_id, item_id, ts + INTERVAL 5 SECOND AS ts,
               CASE WHEN {_ACTION} < 14 THEN 'click' WHEN {_ACTION} < 16 THEN 'play'
                    WHEN {_ACTION} < 18 THEN 'rate' ELSE 'order' END AS event,
               CASE WHEN {_ACTION} < 14 THEN 1.0 WHEN {_ACTION} < 16 THEN 300.0 * score
                    WHEN {_ACTION} < 18 THEN 1 + floor(4.9 * score) ELSE 5 + 100 * score END AS value
        FROM read_parquet('{exposures}')
        WHERE hash(request_id, position) % 20 = 0
    """


def write(folder: Path, rows: int) -> None:
    """Write what is missing; what is there is taken as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    tables = {
        f"exposures_{rows}.parquet": _exposures(rows, HOUR, 1),
        f"earlier_{rows}.parquet": _exposures(rows // 10, EARLIER, 2),
        "catalog.parquet": f"""
            SELECT i AS item_id, 'category ' || (hash(i) % {CATEGORIES}) AS category,
                   TIMESTAMP '2025-01-01' AS created_at, TIMESTAMP '2025-01-01' AS available_from,
                   TIMESTAMP '2027-01-01' AS available_until, 30.0 + hash(i) % 600 AS length
            FROM range({ITEMS}) AS numbers(i)""",
        "users.parquet": f"""
            SELECT i AS user_id, 'segment ' || (hash(i) % {SEGMENTS}) AS segment
            FROM range({USERS}) AS numbers(i)""",
        f"feedback_{rows}.parquet": _feedback(folder / f"exposures_{rows}.parquet"),
        f"earlier_feedback_{rows}.parquet": _feedback(folder / f"earlier_{rows}.parquet"),
        "blacklist.parquet": f"SELECT {ITEMS} * 2 + i AS item_id FROM range(100000) AS numbers(i)",
    }
    for name, query in tables.items():
        if not (folder / name).exists():
            connection.execute(f"COPY ({query}) TO '{folder}/{name}.part' (FORMAT parquet)")
            (folder / f"{name}.part").rename(folder / name)
