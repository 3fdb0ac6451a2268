"""The files that every tool of `make bench-peers` reads: lists, a catalog, a history.

One list a user, each item once in it, because the peers know users and no requests. Whether an item was acted
on is a column of the lists, so that the peers need no join of theirs; ours still joins.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from benchmarks.peer_shared import CATALOG, CATEGORIES, HISTORY, LISTS

USERS, LIST_LENGTH, ITEMS, EARLIER = 100_000, 10, 5_000, 1_000_000
_DRAWS = 40  # for ten different items of a list


def _uniform(seed: str) -> str:
    """A number in [0, 1) that depends on nothing but its seed, so that every run writes the same file."""
    return f"(hash({seed}) / 18446744073709551616.0)"


def _item(seed: str) -> str:
    """An item with a density near 1 / rank."""
    return f"CAST(floor(pow({ITEMS}, {_uniform(seed)}) - 1) AS BIGINT)"


_SHOWN = f"""
    WITH draws AS (
        SELECT u AS user_id, {_item("u * 31, d")} AS item_id, min(d) AS drawn
        FROM range({USERS}) AS users(u), range({_DRAWS}) AS draws(d) GROUP BY ALL
    ), places AS (
        SELECT user_id, item_id, row_number() OVER (PARTITION BY user_id ORDER BY drawn) AS position
        FROM draws
    )
    SELECT user_id AS request_id, user_id, item_id, CAST(position AS INTEGER) AS position,
           TIMESTAMP '2026-01-02 10:00:00' + to_milliseconds(user_id * 36) AS ts,
           (1 - position / 20.0) * (0.5 + 0.5 * {_uniform("user_id * 7")}) AS score,
           CAST({_uniform("user_id * 13, position")} < 0.2 * (1 - position / 12.0) AS INTEGER) AS clicked,
           CAST(hash(item_id) % {CATEGORIES} AS INTEGER) AS category
    FROM places WHERE position <= {LIST_LENGTH} ORDER BY user_id, position
"""
_HISTORY = f"""
    SELECT DISTINCT CAST(floor({USERS} * {_uniform("i * 3")}) AS BIGINT) AS user_id,
           {_item("i * 5")} AS item_id
    FROM range({EARLIER}) AS rows(i)
"""


def write(folder: Path) -> None:
    """Write what is missing; what is there is taken as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    queries = {
        LISTS: _SHOWN,
        CATALOG: f"SELECT i AS item_id, CAST(hash(i) % {CATEGORIES} AS INTEGER) AS category "
        f"FROM range({ITEMS}) AS rows(i)",
        HISTORY: _HISTORY,
    }
    for name, query in queries.items():
        if not (folder / name).exists():
            connection.execute(f"COPY ({query}) TO '{folder}/{name}.part' (FORMAT parquet)")
            (folder / f"{name}.part").rename(folder / name)
