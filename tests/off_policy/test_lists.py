"""Estimates of whole lists: by hand, against the published formulas in loops, and where the truth is known.

The loops are written from the definitions that the Open Bandit Pipeline documents: SIPS, IIPS and RIPS, and
their self-normalised forms (McInerney et al. 2020, Li et al. 2018, Swaminathan and Joachims 2015, Kiyohara et
al. 2022).
"""

from __future__ import annotations

import itertools
import math

import duckdb
import ibis
import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Status
from monitor.engines.duckdb import Engine
from monitor.off_policy import lists
from monitor.off_policy.list_queries import Kind
from monitor.off_policy.lists import overlap_of_lists, read, values_of_lists
from monitor.off_policy.results import Question
from monitor.statistics.off_policy import (
    Rows,
    from_sums,
    ips,
    ips_by_position,
    ratio_sums,
    self_normalised_ips,
)

QUESTION = Question("click", "target", 10.0)


def frame(lists, *, users=None, first=1):
    """A table of lists of (weight, reward), at the positions from `first`."""
    rows = [
        (f"r{n}", f"u{n}" if users is None else users[n], first + k, w, float(r))
        for n, pairs in enumerate(lists)
        for k, (w, r) in enumerate(pairs)
    ]
    table = pd.DataFrame(rows, columns=["request_id", "user_id", "position", "w", "reward"])
    return table.astype({"position": "Int64", "w": object})


def estimated(table, *, ordered=True, reason=""):
    """The results of a table of rows by their name; empty if there are no lists."""
    engine = Engine(duckdb.connect())
    table = table.assign(alone=table["request_id"].where(table["user_id"].isna()))
    types = dict.fromkeys(("request_id", "user_id", "alone"), "string")
    schema = ibis.schema({**types, "position": "int64", "w": "float64", "reward": "float64"})
    rows = engine.create("rows", ibis.memtable(table[list(schema)], schema=schema))
    found = read(engine, rows, ordered)
    if found is None:
        return {}
    results = [*overlap_of_lists(QUESTION, found), *values_of_lists(QUESTION, found, reason)]
    return {one.labels["by"]: one for one in results}


def products(table, kind):
    """The weight of each row by loops, and the place at which a self-normalised value divides."""
    weights, places = [], []
    for _, rows in table.sort_values(["request_id", "position"]).groupby("request_id", sort=False):
        for at in range(len(rows)):
            used = {"by_position": rows[at : at + 1], "by_cascade": rows[: at + 1], "by_list": rows}[kind]
            weights.append(math.prod(used["w"]))
            places.append(0 if kind == "by_list" else rows["position"].iloc[at])
    return np.array(weights), np.array(places)


def loops(table, kind):
    """The plain value, the self-normalised value, and what the lists are worth by their weights."""
    table = table.sort_values(["request_id", "position"])
    weights, places = products(table, kind)
    rewards, lists = table["reward"].to_numpy(), table["request_id"].nunique()
    plain = normalised = 0.0
    for w, r, place in zip(weights, rewards, places, strict=True):
        plain += w * r / lists
        normalised += w * r / weights[places == place].mean() / lists
    worth = weights.sum() ** 2 / (weights**2).sum() * lists / len(weights)
    return plain, normalised, worth


def random_lists(seed, *, lists=400, longest=3, ragged=False):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, lists) if ragged else np.full(lists, longest)
    table = frame(
        [[(random.choice([0.0, 0.5, 1.0, 1.5]), random.random() < 0.3) for _ in range(n)] for n in lengths],
        users=[f"u{n}" for n in random.integers(0, 90, lists)],
    )
    return table.sample(frac=1.0, random_state=seed)  # the order of a log's rows means nothing


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_estimator_is_that_of_the_published_formula(seed, ragged):
    table = random_lists(seed, ragged=ragged)
    found = estimated(table)
    for kind in Kind:
        plain, normalised, worth = loops(table, kind)
        assert found[f"ips_{kind}"].value == pytest.approx(plain)
        assert found[f"self_normalised_{kind}"].value == pytest.approx(normalised)
        assert found[f"effective_lists_{kind}"].value == pytest.approx(worth)


def test_intervals_are_by_user():
    table = random_lists(7)
    found = estimated(table)
    table = table.sort_values(["request_id", "position"])
    starts = (~table["request_id"].duplicated()).to_numpy(float)
    units = pd.factorize(table["user_id"])[0]
    for kind in Kind:
        weights, _ = products(table, kind)
        rows = weights.sum() ** 2 / (weights**2).sum()
        sums = ratio_sums(weights * table["reward"].to_numpy(), starts, units)
        mine = found[f"ips_{kind}"]
        assert (mine.lower, mine.upper) == pytest.approx(from_sums(sums, (0.0, 3.0), rows).interval)
    requests = pd.factorize(table["request_id"])[0]
    array = ips_by_position(Rows.of(table["w"].to_numpy(float), table["reward"], units), requests)
    mine = found["ips_by_position"]
    assert (mine.value, mine.lower, mine.upper) == pytest.approx((array.value, *array.interval))


def test_a_self_normalised_interval_of_whole_lists_is_the_delta_method_of_the_ratio():
    table = random_lists(8)
    mine = estimated(table)["self_normalised_by_list"]
    weights, _ = products(table, "by_list")
    table = table.sort_values(["request_id", "position"])
    units = pd.factorize(table["user_id"])[0]
    sums = ratio_sums(weights * table["reward"].to_numpy(), weights / 3, units)
    known = from_sums(sums, (0.0, 3.0), weights.sum() ** 2 / (weights**2).sum())
    assert mine.value == pytest.approx(known.value)
    # It counts a unit of another weight as a unit of the ratio; the terms count lists.
    assert (mine.lower, mine.upper) == pytest.approx(known.interval, rel=0.05)


def test_a_table_worked_by_hand():
    table = frame(
        [[(2.0, 1), (0.5, 1)], [(0.5, 0), (2.0, 1)], [(1.0, 1), (1.0, 0)], [(0.0, 0), (1.0, 1)]] * 100
    )
    found = estimated(table)
    # rewards by their own weights 2.5 + 2 + 1 + 1; cascade 2 + 1, 1, 1, 0; whole lists 1 * 2, 1 * 1, 1 * 1, 0
    assert found["ips_by_position"].value == pytest.approx(6.5 / 4)
    assert found["ips_by_cascade"].value == pytest.approx(5 / 4)
    assert found["ips_by_list"].value == pytest.approx(4 / 4)
    # Mean weights by position 3.5 / 4 and 4.5 / 4; in the cascade 3.5 / 4 and 3 / 4; of whole lists 3 / 4.
    assert found["self_normalised_by_position"].value == pytest.approx(3 / 3.5 + 3.5 / 4.5)
    assert found["self_normalised_by_cascade"].value == pytest.approx(3 / 3.5 + 2 / 3)
    assert found["self_normalised_by_list"].value == pytest.approx(4 / 3)
    # (3.5 + 4.5)^2 / (5.25 + 6.25) / 2 lists of a row; 6.5^2 / 8.25 / 2; 6^2 / 6 / 2; each a hundred times
    worth = [found[f"effective_lists_{kind}"].value for kind in Kind]
    assert worth == pytest.approx([100 * 64 / 11.5 / 2, 100 * 42.25 / 8.25 / 2, 300])


def test_lists_of_a_single_row_have_no_estimates_of_lists():
    assert estimated(frame([[(1.0, 1)], [(2.0, 0)]] * 200)) == {}


def test_with_one_position_beside_a_single_longer_list_all_are_nearly_ips():
    """One position: every product is the row's own weight. A list of two makes the log one of lists."""
    rows = [[(2.0, 1)], [(0.5, 0)], [(0.5, 1)]] * 300
    found = estimated(frame([*rows, [(1.0, 0), (1.0, 0)]]))
    one = Rows.of([w for [(w, _)] in rows] + [1.0], [r for [(_, r)] in rows] + [0])
    for kind in Kind:
        assert found[f"ips_{kind}"].value == pytest.approx(ips(one).value)
        assert found[f"self_normalised_{kind}"].value == pytest.approx(
            self_normalised_ips(one).value, rel=1e-3
        )


def test_weights_of_1_give_the_mean_of_the_log():
    found = estimated(frame([[(1.0, 1), (1.0, 1)], [(1.0, 0), (1.0, 1)]] * 200))
    for kind in Kind:
        assert found[f"ips_{kind}"].value == found[f"self_normalised_{kind}"].value == 1.5
        assert found[f"effective_lists_{kind}"].value == pytest.approx(400)


def broken(fault):
    """400 lists, ten of which have the fault."""
    table = frame([[(1.0, 1), (1.0, 0), (1.0, 0)]] * 400)
    first = table["request_id"].isin([f"r{n}" for n in range(10)])
    at = table["position"] == 2
    if fault == "a row without a weight":
        table.loc[first & at, "w"] = None
    elif fault == "a row without a position":
        table.loc[first & at, "position"] = pd.NA
    elif fault == "a position twice":
        table.loc[first & at, "position"] = 3
    else:
        table = table[~(first & at)]
    return table


FAULTS = ("a row without a weight", "a row without a position", "a position twice", "a gap in the positions")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_list_that_cannot_be_used_whole_is_counted_by_its_fault(fault):
    found = estimated(broken(fault))
    left = found["lists_without_weight"]
    assert (left.value, left.samples, left.detail) == (10, 400, f"10 with {fault}")
    for kind in ("by_cascade", "by_list"):
        assert found[f"ips_{kind}"].samples == 390
        assert found[f"effective_lists_{kind}"].value == pytest.approx(390)
        assert found[f"ips_{kind}"].value == pytest.approx(1.0)
    of_position = 390 if fault == "a row without a weight" else 400
    assert found["ips_by_position"].samples == of_position


def test_a_list_that_lacks_a_weight_makes_no_value_too_low():
    table = broken("a row without a weight")
    table["reward"] = 1.0
    found = estimated(table)
    for kind in Kind:
        assert found[f"ips_{kind}"].value == found[f"self_normalised_{kind}"].value == pytest.approx(3.0)
        assert found[f"effective_lists_{kind}"].value == pytest.approx(390)


def test_a_long_list_that_is_left_out_makes_no_interval_wider():
    """A robot that got one position a thousand times: no list that is used earns more than two."""
    usual = random_lists(5, longest=2)
    robot = frame([[(1.0, 0)] * 1000], users=["robot"]).assign(request_id="robot", position=1)
    alone, both = estimated(usual), estimated(pd.concat([usual, robot.astype(usual.dtypes)]))
    assert both["lists_without_weight"].detail == "1 with a position twice"
    for name in ("ips_by_cascade", "self_normalised_by_cascade", "ips_by_list", "self_normalised_by_list"):
        known = alone[name]
        mine = both[name]
        assert (mine.value, mine.lower, mine.upper) == pytest.approx((known.value, known.lower, known.upper))


@pytest.mark.parametrize("fault", FAULTS)
def test_many_lists_that_cannot_be_used_whole_give_no_estimate(fault):
    table = broken(fault)
    kept = [f"r{n}" for n in range(10)] + [f"r{n}" for n in range(10, 160)]
    found = estimated(table[table["request_id"].isin(kept)])
    by_position = ("ips_by_position", "self_normalised_by_position")
    products = ("ips_by_cascade", "self_normalised_by_cascade", "ips_by_list", "self_normalised_by_list")
    without = (*by_position, *products) if fault == "a row without a weight" else products
    for name in without:
        assert found[name].status is Status.NO_DATA
        assert found[name].detail == "10 of 160 lists cannot be used whole, more than 5%"
    assert all(found[name].status is Status.OK for name in by_position if name not in without)


def test_a_log_without_positions_has_whole_lists_but_no_cascade():
    table = frame([[(2.0, 1), (1.0, 0)], [(0.5, 1), (1.0, 0)]] * 200)
    found = estimated(table.assign(position=pd.NA), ordered=False)
    assert found["lists_without_weight"].value == 0
    assert found["ips_by_list"].value == pytest.approx(1.25)
    assert found["ips_by_position"].value == pytest.approx(1.25)
    for name in ("ips_by_cascade", "self_normalised_by_cascade", "effective_lists_by_cascade"):
        assert found[name].status is Status.NO_DATA
        assert found[name].detail.startswith("the log has no positions")


def test_positions_may_start_at_0_or_on_a_later_page():
    lists = [[(2.0, 1), (1.0, 0)], [(0.5, 1), (1.0, 0)]] * 200
    values = [estimated(frame(lists, first=first))["ips_by_cascade"].value for first in (0, 1, 21)]
    assert values == pytest.approx([1.25] * 3)


def test_each_has_its_own_overlap():
    """Ten positions: a row's own weight is fine, the product of ten is worth few lists."""
    random = np.random.default_rng(3)
    lists = [[(w, 0) for w in random.choice([0.2, 1.8], 10)] for _ in range(500)]
    found = estimated(frame(lists))
    assert found["ips_by_position"].status is Status.OK
    assert found["effective_lists_by_position"].value > found["effective_lists_by_cascade"].value
    assert found["effective_lists_by_cascade"].value > found["effective_lists_by_list"].value
    worth = found["effective_lists_by_list"].value
    assert found["ips_by_list"].status is found["self_normalised_by_list"].status is Status.NO_DATA
    assert found["ips_by_list"].detail == f"500 lists are worth {worth:.3g} by their weights, less than 100"


def test_few_lists_of_many_rows_are_few():
    found = estimated(frame([[(1.0, 1)] * 10] * 50))
    for kind in Kind:
        assert found[f"ips_{kind}"].detail == "50 lists are worth 50 by their weights, less than 100"
    one = estimated(frame([[(1.0, 1), (1.0, 0)]]))
    assert one["ips_by_list"].detail == "1 list is worth 1 by its weights, less than 100"


def test_what_is_wrong_with_the_rows_is_wrong_with_lists():
    found = estimated(frame([[(1.0, 1), (1.0, 0)]] * 200), reason="1 of 3 rows have no weight")
    assert {found[f"ips_{kind}"].detail for kind in Kind} == {"1 of 3 rows have no weight"}


def test_no_weight_above_0_is_worth_nothing():
    found = estimated(frame([[(0.0, 1), (1.0, 0)]] * 200))
    assert found["ips_by_list"].detail == "200 lists are worth 0 by their weights, less than 100"
    assert found["effective_lists_by_list"].value == 0
    assert found["ips_by_cascade"].status is Status.NO_DATA
    # The position is fine by its own weights, but nothing is known of the first.
    assert found["ips_by_position"].value == 0
    assert "at one position all weights are 0" in found["self_normalised_by_position"].detail


@pytest.mark.parametrize(
    ("weight", "reason"), [(1e200, "too large for a number"), (1e-200, "too small for a number")]
)
def test_products_beyond_float64_have_a_reason_and_self_normalised_ones_a_value(weight, reason):
    found = estimated(frame([[(weight, 1), (weight, 0)], [(weight, 0), (weight, 0)]] * 200))
    assert found["ips_by_list"].status is Status.NO_DATA
    assert reason in found["ips_by_list"].detail
    assert found["self_normalised_by_list"].value == pytest.approx(0.5)
    assert "1 is expected" in found["self_normalised_by_list"].detail
    assert found["effective_lists_by_list"].value == pytest.approx(400)


@pytest.mark.parametrize(("users", "reason"), [(1, "fewer than two users"), (2, "ran out of the range")])
def test_sums_that_leave_float64_are_not_called_too_few_users(monkeypatch, users, reason):
    """However the sums fail: no list is found that passes all other reasons."""
    monkeypatch.setattr(lists, "from_sums", lambda *_: None)
    names = [f"u{n % users}" for n in range(150)]
    found = estimated(frame([[(1.0, 1), (1.0, 0)]] * 150, users=names))
    for name in ("ips_by_position", "self_normalised_by_cascade"):
        assert found[name].status is Status.NO_DATA
        assert reason in found[name].detail


def test_products_far_from_1_are_named():
    found = estimated(frame([[(0.5, 1), (0.5, 0)], [(0.5, 0), (0.5, 0)]] * 200))
    assert found["ips_by_list"].detail.startswith("the mean product of weights is 0.25 (")
    right = estimated(frame([[(1.5, 1), (1.0, 0)], [(0.5, 0), (1.0, 0)]] * 200))
    assert right["ips_by_list"].detail == ""


def test_rows_without_a_user_are_units_of_their_own():
    table = frame([[(1.0, 1), (1.0, 0)], [(1.0, 0), (1.0, 0)]] * 100, users=[None] * 200)
    named = frame([[(1.0, 1), (1.0, 0)], [(1.0, 0), (1.0, 0)]] * 100)
    mine, other = estimated(table)["ips_by_list"], estimated(named)["ips_by_list"]
    assert (mine.value, mine.lower, mine.upper) == pytest.approx((other.value, other.lower, other.upper))


# In simulated worlds the truth is known.

RATES = np.array([0.05, 0.2, 0.5])
P = np.array([[0.3, 0.4, 0.3], [0.4, 0.3, 0.3]])
Q = np.array([[0.2, 0.4, 0.4], [0.3, 0.2, 0.5]])


def chance(items, position, model):
    """The chance of a click at a position: by the item alone, also by the one above, or by the one below."""
    own = RATES[items[position]]
    if model == "cascade" and position == 1:
        return own * (1 - 0.9 * (items[0] == 2))
    if model == "whole" and position == 0:
        return own * (1 - 0.9 * (items[1] == 2))
    return own


def truth(model):
    pairs = itertools.product(range(3), range(3))
    return sum(Q[0][a] * Q[1][b] * sum(chance((a, b), k, model) for k in (0, 1)) for a, b in pairs)


RIGHT = {
    "independent": {"by_position", "by_cascade", "by_list"},
    "cascade": {"by_cascade", "by_list"},
    "whole": {"by_list"},
}


@pytest.mark.parametrize("model", RIGHT)
def test_intervals_hold_the_truth_where_the_assumption_is_right_and_only_there(model):
    tries = 100
    names = [f"{name}_{kind}" for kind in Kind for name in ("ips", "self_normalised")]
    values, held = {name: [] for name in names}, dict.fromkeys(names, 0)
    for seed in range(tries):
        random = np.random.default_rng(seed)
        items = np.stack([random.choice(3, 500, p=P[k]) for k in (0, 1)], axis=1)
        clicks = [[random.random() < chance(pair, k, model) for k in (0, 1)] for pair in items]
        ratio = Q / P
        lists = [[(ratio[k][a[k]], r[k]) for k in (0, 1)] for a, r in zip(items, clicks, strict=True)]
        found = estimated(frame(lists))
        for name in names:
            values[name].append(found[name].value)
            held[name] += found[name].lower <= truth(model) <= found[name].upper
    for name in names:
        off = abs(np.mean(values[name]) - truth(model)) / (np.std(values[name]) / math.sqrt(tries))
        if name.partition("by_")[2] in {kind.removeprefix("by_") for kind in RIGHT[model]}:
            assert off < 4, name
            assert held[name] >= 90, (name, held[name])
        else:
            assert off > 6, name
            assert held[name] < 90, (name, held[name])
