"""A list is straight exactly if its positions say the place of each item."""

from __future__ import annotations

import random

import ibis
import pytest

from monitor.metrics.shared import Shared
from tests.metrics.worlds import START


def straight_of(lists, part="feedback"):
    rows = [
        {"request_id": f"r{number}", "user_id": "u", "item_id": item, "ts": START, "position": position}
        for number, pairs in enumerate(lists)
        for item, position in pairs
    ]
    schema = {
        "request_id": "string",
        "user_id": "string",
        "item_id": "string",
        "ts": "timestamp(6)",
        "position": "int64",
    }
    table = Shared(ibis.memtable(rows, schema=schema), part=part).requests()
    found = {row["request_id"]: row["straight"] for row in table.to_pyarrow().to_pylist()}
    return [found[f"r{number}"] for number in range(len(lists))]


def at(*positions):
    return [(f"i{number}", position) for number, position in enumerate(positions)]


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        (at(1, 2, 3), True),
        (at(3, 1, 2), True),
        (at(0), True),
        (at(7, 8), True),
        (at(*range(62)), True),
        (at(60, 61), True),
        (at(61, 62), False),  # no bit is left for it
        (at(*range(1, 70)), False),
        (at(1, 1), False),
        (at(1, 1, 3), False),
        (at(1, 3), False),
        (at(-1, 0), False),
        (at(1, None), False),
        (at(None), False),
        (at(2**53, 2**53 - 1), False),
        (at(-(2**53), 2**53), False),
        ([("a", 1), ("a", 2)], True),
        ([("a", 1), (None, 2)], False),
        ([(None, 1)], False),
        ([(None, None)], False),
    ],
)
def test_positions_say_the_place_if_none_is_missing_or_repeated(pairs, wanted):
    assert straight_of([pairs]) == [wanted]


@pytest.mark.parametrize("seed", range(5))
def test_random_lists_are_straight_as_by_sorting_their_positions(seed):
    dice = random.Random(seed)
    lists = []
    for _ in range(300):
        start, length = dice.choice([0, 1, 1, 5, 40, 60, 1000, -2]), dice.randrange(1, 25)
        positions = [*range(start, start + length)]
        for _ in range(dice.choice([0, 0, 1, 2])):
            positions[dice.randrange(length)] = dice.choice([*positions, None, 0, 62])
        dice.shuffle(positions)
        lists.append([(dice.choice(["a", "b", "c", "d", *([None] * (length % 2))]), p) for p in positions])
    expected = []
    for pairs in lists:
        positions = [position for _, position in pairs]
        known = None not in positions and all(item is not None for item, _ in pairs)
        ordered = sorted(positions) if known else [0]
        small = ordered[0] >= 0 and ordered[-1] <= 61
        expected.append(known and small and ordered == [*range(ordered[0], ordered[0] + len(ordered))])
    assert straight_of(lists) == expected
    assert any(expected)
    assert not all(expected)


def test_only_lists_that_ranking_reads_say_whether_they_are_straight():
    with pytest.raises(KeyError, match="straight"):
        straight_of([at(1, 2)], part="exposures")
    assert straight_of([at(1, 2)], part=None) == [True]
