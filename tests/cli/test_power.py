"""`power`: what it answers, in both forms, and what it says of a question that makes no sense."""

from __future__ import annotations

import json
import re

import pytest

from monitor.statistics.sample_size import Mean, Plan, Share, power_at, sample_size
from tests.cli.conftest import run_monitor


@pytest.fixture(scope="module")
def power(tmp_path_factory):
    folder = tmp_path_factory.mktemp("power")
    return lambda *arguments, **env: run_monitor("power", *arguments, cwd=folder, **env)


def answer(power, *arguments):
    ran = power(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out)


def test_the_users_and_the_days_that_an_effect_needs(power):
    ran = power("--baseline", "5%", "--effect", "2%", "--users-per-day", "10000")
    assert (ran.code, ran.err) == (0, "")
    shown = dict(re.split(r"\s{2,}", line) for line in ran.out.splitlines())
    assert shown == {
        "share now": "0.05",
        "effect": "+0.001 (to 0.051, +2 %)",
        "alpha": "0.05, two-sided",
        "power": "0.8",
        "users of control": "752,703",
        "users of each treatment": "752,703",
        "users in all 2 arms": "1,505,406",
        "days at 10,000 a day": "151",
    }


def test_an_effect_is_relative_with_a_percent_sign_and_absolute_without(power):
    relative = answer(power, "--baseline", "0.05", "--effect", "2%")
    absolute = answer(power, "--baseline", "5%", "--effect", "0.001")
    assert relative == pytest.approx(absolute)
    assert (relative["users"], relative["days"]) == (1_505_406, None)


def test_users_give_the_smallest_effect_and_both_give_the_power(power):
    found = answer(power, "--baseline", "0.05", "--users", "200000")
    assert found["users_control"] == found["users_per_treatment"] == 100_000
    assert sample_size(Share(0.05), found["effect"], Plan()) == 100_000
    both = answer(power, "--baseline", "0.05", "--users", "200000", "--effect", "-2%")
    assert both["power"] == pytest.approx(power_at(Share(0.05), -0.001, 100_000, Plan()))


def test_means_several_arms_and_unequal_ones(power):
    asked = ("--mean", "12.5", "--sd", "30", "--effect", "1%", "--arms", "3", "--ratio", "0.5", "--one-sided")
    found = answer(power, *asked, "--alpha", "0.1", "--power", "0.9")
    plan = Plan(alpha=0.05, power=0.9, ratio=0.5, two_sided=False)  # one of two comparisons
    control = sample_size(Mean(30.0), 0.125, plan)
    assert found["users_control"] == control
    assert found["users_per_treatment"] == -(-control // 2)
    assert found["users"] == control + 2 * found["users_per_treatment"]
    assert (found["metric"], found["alpha"], found["alpha_per_comparison"]) == ("mean", 0.1, 0.05)
    table = power(*asked).out
    assert "12.5, standard deviation 30" in table
    assert "0.05, one-sided (0.025 a comparison)" in table


@pytest.mark.parametrize(
    ("users", "ratio", "arms"), [(110, "0.1", (100, 10)), (120, "0.2", (100, 20)), (210, "1.1", (100, 110))]
)
def test_users_are_divided_by_the_ratio_without_an_error_of_rounding(power, users, ratio, arms):
    found = answer(power, "--mean", "10", "--sd", "3", "--users", str(users), "--ratio", ratio)
    assert (found["users_control"], found["users_per_treatment"]) == arms
    assert found["users"] == users


def test_a_mean_of_0_has_no_relative_effect(power):
    found = answer(power, "--mean", "0", "--sd", "3", "--users", "100")
    assert found["relative_effect"] is None
    assert found["effect"] == pytest.approx(1.698, abs=0.001)


def test_large_numbers_are_shown_without_an_exponent(power):
    shown = power("--mean", "12345678", "--sd", "30000000", "--effect", "1%").out
    assert re.split(r"\s{2,}", shown.splitlines()[0]) == [
        "mean now",
        "12,345,678, standard deviation 30,000,000",
    ]
    assert re.split(r"\s{2,}", shown.splitlines()[1]) == ["effect", "+123,457 (to 12,469,134.78, +1 %)"]


WRONG = {
    "nothing to ask about": ([], "--baseline, or --mean"),
    "both": (["--baseline", "5%", "--mean", "3", "--sd", "1", "--effect", "2%"], "give either --baseline"),
    "nothing asked": (["--baseline", "5%"], "give --effect, or --users"),
    "a share above 1": (["--baseline", "5", "--effect", "2%"], "did you mean 5%?"),
    "a share of 100 %": (["--baseline", "100%", "--effect", "2%"], "must lie between 0 and 1 "),
    "a share far above 1": (["--baseline", "250", "--effect", "2%"], "must lie between 0 and 1 "),
    "a share of 0": (["--baseline", "0", "--effect", "0.1"], "between 0 and 1"),
    "no number": (["--baseline", "a\x1b[31m", "--effect", "2%"], "is not a number"),
    "no finite number": (["--baseline", "5%", "--effect", "inf"], "is not a number"),
    "no effect": (["--baseline", "5%", "--effect", "0"], "changes nothing"),
    "an effect out of 0 to 1": (["--baseline", "50%", "--effect", "101%"], "is no share"),
    "too small an effect": (["--baseline", "5%", "--effect", "1e-300"], "too small"),
    "a mean without spread": (["--mean", "3", "--effect", "2%"], "--mean needs --sd"),
    "no mean": (["--mean", "nan", "--sd", "1", "--effect", "2"], "--mean must be a number"),
    "no spread": (["--mean", "3", "--sd", "0", "--effect", "2"], "standard deviation is above 0"),
    "alpha above power": (["--baseline", "5%", "--effect", "2%", "--alpha", "0.9"], "alpha < power"),
    "a ratio of 0": (["--baseline", "5%", "--effect", "2%", "--ratio", "0"], "ratio lies between"),
    "one arm": (["--baseline", "5%", "--effect", "2%", "--arms", "1"], "--arms"),
    "too few users for the arms": (["--baseline", "5%", "--users", "1"], "too few for 2 arms"),
    "too few users for anything": (["--baseline", "5%", "--users", "4"], "too few to show any rise"),
    "no users": (["--baseline", "5%", "--users", "0"], "--users"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_question_that_makes_no_sense_ends_with_2_and_a_sentence(power, case):
    arguments, hint = WRONG[case]
    ran = power(*arguments, COLUMNS="200")
    assert (ran.code, ran.out) == (2, "")
    assert hint in re.sub(r"\s+", " ", f"{ran.err} ")
    assert "Traceback" not in ran.err
    assert "\x1b" not in ran.err
