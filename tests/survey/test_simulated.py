"""Simulated surveys with a known truth: intervals hold it, weights remove the bias, null metrics are silent.

Many surveys share one log: each question is asked anew, with other respondents and other answers.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from monitor.survey.findings import Verdict
from tests.survey.world import (
    answers,
    catalog,
    clicks,
    exposures,
    feelings,
    open_survey,
    people,
    write,
)

QUESTIONS = 32
USERS = 1200


def asked(folder, runtime, *, slope=0.0, satisfied_by_lists=0.0, respond_by_lists=0.0, rate=0.12, **config):
    """A survey of many questions, and the mean of all users for each of them."""
    rng = np.random.default_rng(20260105)
    users = people(rng, USERS)
    shown = exposures(rng, users)
    truth, given = {}, []
    for number in range(QUESTIONS):
        question = f"q{number:02}"
        feeling = feelings(rng, users, slope=slope, by_lists=satisfied_by_lists)
        truth[question] = feeling.mean()
        given.append(answers(rng, users, feeling, question, rate=rate, by_lists=respond_by_lists))
    names = {question: {} for question in truth}
    logs = {
        "exposures": shown,
        "feedback": clicks(rng, shown),
        "catalog": catalog(),
        "survey": pd.concat(given),
    }
    settings = write(folder, **logs) | {"survey": {"questions": names}} | config
    return open_survey(runtime.engine, folder, settings), truth


@pytest.fixture(scope="module")
def honest(runtime, tmp_path_factory):
    """Answers that depend on no metric, of respondents at random."""
    survey, truth = asked(tmp_path_factory.mktemp("honest"), runtime)
    yield survey.found(), truth
    survey.close()


@pytest.fixture(scope="module")
def biased(runtime, tmp_path_factory):
    """Active users are happier and respond more often; longer lists make everybody happier."""
    survey, truth = asked(
        tmp_path_factory.mktemp("biased"), runtime, slope=1.2, satisfied_by_lists=0.8, respond_by_lists=1.0
    )
    yield survey.found(weight=True), truth
    survey.close()


def test_the_interval_of_a_mean_holds_the_truth_in_95_of_100_surveys(honest):
    found, truth = honest
    held = [one.answer.lower <= truth[one.name] <= one.answer.upper for one in found.questions]
    assert sum(held) >= 27  # of 32 surveys, fewer than 27 hold it once in 200 times


def test_metrics_without_an_effect_are_flagged_in_5_of_100_surveys_or_fewer(honest):
    found, _ = honest
    flagged = [
        any(one.verdict in (Verdict.TRACKS, Verdict.AGAINST) for one in question.tracked)
        for question in found.questions
    ]
    tested = sum(one.correlation is not None for question in found.questions for one in question.tracked)
    assert tested >= 10 * QUESTIONS
    assert sum(flagged) <= 5  # of 32 surveys, 6 or more are wrong once in 200 times


def test_respondents_at_random_give_no_warning(honest):
    found, _ = honest
    assert found.warnings == []


def test_the_mean_of_active_respondents_is_too_high_and_weights_correct_it(biased):
    found, truth = biased
    off = [one.answer.value - truth[one.name] for one in found.questions]
    corrected = [one.weighted.value - truth[one.name] for one in found.questions]
    assert np.mean(off) > 0.15
    assert abs(np.mean(corrected)) < 0.04
    held = [one.weighted.lower <= truth[one.name] <= one.weighted.upper for one in found.questions]
    missed = [one.answer.lower <= truth[one.name] <= one.answer.upper for one in found.questions]
    assert sum(held) >= 27
    assert np.mean(missed) < 0.6


def test_respondents_by_activity_give_a_warning(biased):
    found, _ = biased
    assert ("volume", (("by", "requests"),)) in [one.series for one in found.warnings]


def test_the_metric_that_the_answers_depend_on_is_found(biased):
    found, _ = biased
    verdicts = [
        {one.series[0]: one.verdict for one in question.tracked}["list_length"]
        for question in found.questions
    ]
    assert verdicts.count(Verdict.TRACKS) == QUESTIONS


def test_every_survey_says_of_each_metric_what_is_known(biased):
    found, _ = biased
    for question in found.questions:
        unknown = [one for one in question.tracked if one.verdict is Verdict.UNKNOWN]
        assert all(one.needed is None or one.needed > one.correlation.n for one in unknown)
        assert all(one.why for one in question.tracked if one.correlation is None)
