"""What each of several windows looks back on, against brute force."""

from __future__ import annotations

from collections import Counter

import ibis
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.metrics.history import EXPOSURES, WINDOW, HistoryOfWindows

WINDOWS = 4
PAIR = st.tuples(st.sampled_from("uvw"), st.sampled_from("abc"))
NUMBERED = st.lists(st.tuples(st.integers(-7, -1), PAIR), max_size=14)
NOW = st.lists(st.tuples(st.integers(0, WINDOWS - 1), PAIR), max_size=10)


def counted(pairs):
    rows = [
        {WINDOW: number, "user_id": user, "item_id": item, EXPOSURES: times}
        for (number, (user, item)), times in Counter(pairs).items()
    ]
    types = {WINDOW: "int64", "user_id": "string", "item_id": "string", EXPOSURES: "int64"}
    return ibis.memtable(pd.DataFrame(rows, columns=list(types)), schema=ibis.schema(types))


class Tables:
    """The windows' own pairs; nothing is stored."""

    def __init__(self, now):
        self.now = counted(now)

    def once(self, name, key, build, *, lasting=None):
        return build()

    def user_items(self, key=None):
        return self.now

    def item_counts(self, key=None):
        return self.now.group_by([WINDOW, "item_id"]).aggregate(exposures=self.now[EXPOSURES].sum())

    def groups(self, key):
        return ibis.memtable({WINDOW: list(range(WINDOWS))})


def rows(table, *columns):
    return sorted(table.select(*columns).to_pyarrow().to_pandas().itertuples(index=False, name=None))


@settings(max_examples=60, deadline=None)
@given(NUMBERED, NOW, st.none() | st.lists(PAIR, min_size=1, max_size=6), st.integers(WINDOWS, WINDOWS + 3))
def test_each_window_looks_back_on_the_windows_before_it(before, now, lasting, reach):
    old = None if lasting is None else counted((0, pair) for pair in lasting).drop(WINDOW)
    history = HistoryOfWindows(Tables(now), counted(before) if before else None, old, reach)
    back = {
        window: Counter(lasting or ())
        + Counter(pair for number, pair in [*before, *now] if window - reach <= number < window)
        for window in range(WINDOWS)
    }
    users = {window: {user for user, _ in seen} for window, seen in back.items()}

    assert rows(history.any(), WINDOW, "history") == [(w, int(bool(seen))) for w, seen in back.items()]
    assert rows(history.number_of_users(), WINDOW, "history_users") == [(w, len(users[w])) for w in back]
    shown = {(window, *pair) for window, pair in now}
    known = sorted(one for one in shown if one[1:] in back[one[0]])
    assert rows(history.known(), WINDOW, "user_id", "item_id") == known
    mine = {(window, user) for window, user, _ in shown}
    pairs = {(w, *pair) for w, seen in back.items() for pair in seen if (w, pair[0]) in mine}
    assert set(rows(history.of_users(Tables(now).now), WINDOW, "user_id", "item_id")) == pairs
    items = sorted({(window, item) for window, _, item in shown})
    wanted = []
    for window, item in items:
        seen = {pair: times for pair, times in back[window].items() if pair[1] == item}
        wanted.append((window, item, len(seen), sum(seen.values())))
    assert rows(history.by_item(), WINDOW, "item_id", "users", EXPOSURES) == wanted
