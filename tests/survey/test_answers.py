"""Which answers count, why the others do not, and the lists that an answer is about."""

from __future__ import annotations

import pandas as pd
import pytest

from monitor.core.results import Status
from tests.survey.world import END, START, rows

COLUMNS = ("user_id", "ts", "question", "answer", "request_id")


def at(hours: float) -> pd.Timestamp:
    return START + pd.Timedelta(hours=hours)


def shown(*lists):
    """A list a row: request, user, hours after the start."""
    return rows(
        *((r, u, at(h), "i1") for r, u, h in lists), columns=("request_id", "user_id", "ts", "item_id")
    )


LISTS = shown(("r1", "u1", 1), ("r2", "u1", 2), ("r3", "u2", 3), ("r4", "u3", 20), ("r5", None, 4))


def faults_of(survey_of, *answers, lists=LISTS, **survey):
    survey = {"least": 10, "questions": {"happy": {}}} | survey
    found = survey_of(survey, exposures=lists, survey=rows(*answers, columns=COLUMNS)).found()
    return found.counted, dict(found.faults)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (("u1", at(5), "happy", "4", None), ""),
        (("u1", at(5), "happy", " 4.5 ", None), ""),
        (("u1", at(5), "happy", "1", None), ""),
        (("u1", at(5), "happy", "0.99", None), "out of scale"),
        (("u1", at(5), "happy", "-1e308", None), "out of scale"),
        (("u1", at(5), "happy", "6", None), "out of scale"),
        (("u1", at(5), "happy", "nan", None), "that are NaN"),
        (("u1", at(5), "happy", "-inf", None), "that are infinite"),
        (("u1", at(5), "happy", "1e999", None), "that are infinite"),
        (("u1", at(5), "happy", "very", None), "that are no number"),
        (("u1", at(5), "happy", "4,5", None), "that are no number"),
        (("u1", at(5), "happy", " ", None), "without an answer"),
        (("u1", at(5), "happy", None, None), "without an answer"),
        (("u1", at(5), None, "4", None), "without a question"),
        (("u1", at(5), "", "4", None), "without a question"),
        (("u1", at(5), "Happy", "4", None), "to a question that the config does not name"),
        ((None, at(5), "happy", "4", None), "without a user"),
        (("u9", at(5), "happy", "4", None), "of users that nobody served"),
        (("u9", at(5), "happy", "4", "r1"), "of users that nobody served"),
        (("u1", at(5), "happy", "4", "r9"), "on a request that nobody served"),
        (("u1", at(5), "happy", "4", "r3"), "on a request of another user"),
        (("u1", at(5), "happy", "4", "r5"), "on a request of another user"),
        (("u1", at(5), "happy", "4", "r1"), ""),
        (("u3", at(5), "happy", "4", None), "without a list in the attribution before them"),
        (("u3", at(5), "happy", "4", "r4"), ""),
        (("u1", END, "happy", "4", None), "outside the span"),
        (("u1", START - pd.Timedelta(seconds=1), "happy", "4", None), "outside the span"),
        (("u1", pd.NaT, "happy", "4", None), "without a time"),
    ],
)
def test_each_answer_counts_or_has_one_named_fault(survey_of, answer, fault):
    sound = ("u2", at(6), "happy", "3", None)
    counted, faults = faults_of(survey_of, answer, sound)
    assert (counted, faults) == ((2, {}) if not fault else (1, {fault: 1}))


def test_an_answer_has_the_first_of_its_faults_alone(survey_of):
    counted, faults = faults_of(survey_of, ("u9", END, "odd", "x", "r9"), ("u9", at(1), "happy", "x", "r9"))
    assert (counted, faults) == (0, {"outside the span": 1, "that are no number": 1})


def test_of_a_user_the_last_answer_counts_and_the_earlier_ones_are_doubled(survey_of):
    found = survey_of(
        {"least": 10, "questions": {"happy": {}}},
        exposures=LISTS,
        survey=rows(
            ("u1", at(5), "happy", 1, None), ("u1", at(9), "happy", 5, None), ("u1", at(7), "happy", 2, None),
            columns=COLUMNS,
        ),
    )  # fmt: skip
    assert dict(found.found().faults) == {"doubled, so that a later one counts": 2}
    assert users_of(found) == {("happy", "u1"): 5}


def test_of_two_answers_at_one_time_the_lower_counts(survey_of):
    answers = rows(("u1", at(5), "happy", 4, None), ("u1", at(5), "happy", 2, None), columns=COLUMNS)
    found = survey_of({"questions": {"happy": {}}}, exposures=LISTS, survey=answers)
    assert users_of(found) == {("happy", "u1"): 2}


def test_a_bad_later_answer_does_not_replace_a_good_one(survey_of):
    answers = rows(("u1", at(5), "happy", "4", None), ("u1", at(6), "happy", "99", None), columns=COLUMNS)
    found = survey_of({"questions": {"happy": {}}}, exposures=LISTS, survey=answers)
    assert users_of(found) == {("happy", "u1"): 4}


def test_answers_on_two_requests_both_count_and_a_user_has_their_mean(survey_of):
    answers = rows(
        ("u1", at(5), "happy", 1, "r1"), ("u1", at(6), "happy", 4, "r2"), ("u1", at(7), "happy", 5, "r2"),
        columns=COLUMNS,
    )  # fmt: skip
    found = survey_of({"questions": {"happy": {}}}, exposures=LISTS, survey=answers)
    assert dict(found.found().faults) == {"doubled, so that a later one counts": 1}
    assert users_of(found) == {("happy", "u1"): 3}


def test_an_answer_is_about_its_request_or_the_lists_in_the_attribution_before_it(survey_of):
    lists = shown(("r1", "u1", 1), ("r2", "u1", 2), ("r3", "u1", 3), ("r4", "u1", 9), ("r5", "u2", 2))
    answers = rows(
        ("u1", at(4), "happy", 3, None), ("u1", at(4), "new", 3, "r1"), ("u2", at(4), "new", 3, None),
        columns=COLUMNS,
    )  # fmt: skip
    found = survey_of({"attribution": "2h"}, exposures=lists, survey=answers)
    table = found._about.to_pyarrow().to_pylist()
    about = sorted((row["question"], row["user_id"], row["request_id"]) for row in table)
    assert about == [("happy", "u1", "r2"), ("happy", "u1", "r3"), ("new", "u1", "r1"), ("new", "u2", "r5")]


def test_without_names_in_the_config_the_twenty_questions_with_most_answers_are_read(survey_of):
    many = [(f"u{u}", at(5), f"q{q:02}", 3, None) for q in range(23) for u in range(1, 3 if q else 2)]
    found = survey_of({"least": 10}, exposures=LISTS, survey=rows(*many, columns=COLUMNS)).found()
    assert [one.name for one in found.questions] == [f"q{q:02}" for q in range(1, 21)]
    assert dict(found.faults) == {"to a question beyond the first 20": 5}
    assert "the config names no questions" in found.notes[0]


def test_a_log_without_request_ids_and_with_whole_numbers_is_read(survey_of):
    lists = LISTS.assign(user_id=[1, 1, 2, 3, 4])
    answers = rows(
        (1, at(5), "happy", 4), (2, at(5), "happy", 2), (7, at(5), "happy", 2), columns=COLUMNS[:4]
    )
    found = survey_of({"questions": {"happy": {}}}, exposures=lists, survey=answers)
    assert users_of(found) == {("happy", 1): 4, ("happy", 2): 2}


def test_ids_that_are_numbers_in_one_log_and_texts_in_the_other_meet(survey_of):
    lists = LISTS.assign(user_id=[1, 1, 2, 3, 4])
    answers = rows(("1", at(5), "happy", "4"), ("2", at(5), "happy", "2"), columns=COLUMNS[:4])
    found = survey_of({"questions": {"happy": {}}}, exposures=lists, survey=answers)
    assert users_of(found) == {("happy", "1"): 4, ("happy", "2"): 2}


def test_only_invited_users_count(survey_of):
    lists = LISTS.assign(asked=["yes", "no", "0", None, "yes"])
    answers = rows(("u1", at(5), "happy", 4), ("u2", at(5), "happy", 2), columns=COLUMNS[:4])
    found = survey_of(
        {"questions": {"happy": {}}, "invited": "asked"}, exposures=lists, survey=answers
    ).found()
    assert dict(found.faults) == {"of users who were not invited": 1}
    assert (found.asked, found.asked_by) == (1, "exposures.asked")


def test_rows_without_an_answer_are_the_invitations_if_the_config_says_so(survey_of):
    lists = shown(*((f"r{n}", f"u{n}", 1) for n in range(40)))
    asked = [(f"u{n}", at(5), "happy", 4 if n < 12 else None) for n in range(30)]
    found = survey_of(
        {"questions": {"happy": {}}, "invited": "survey", "least": 10},
        exposures=lists, survey=rows(*asked, columns=COLUMNS[:4]),
    ).found()  # fmt: skip
    (one,) = found.questions
    assert (one.rate.value, one.rate.samples) == (0.4, 30)
    assert (found.served, found.asked, found.respondents) == (40, 30, 12)
    assert dict(found.faults) == {"without an answer": 18}


def test_users_can_be_invited_by_a_column_of_the_users(survey_of):
    people = pd.DataFrame({"user_id": ["u1", "u2", "u3"], "asked": [True, False, True]})
    answers = rows(("u1", at(5), "happy", 4), ("u2", at(5), "happy", 2), columns=COLUMNS[:4])
    found = survey_of({"invited": "users.asked"}, exposures=LISTS, users=people, survey=answers).found()
    assert (found.asked, dict(found.faults)) == (2, {"of users who were not invited": 1})
    assert found.questions[0].answer.status is Status.NO_DATA


def test_a_file_with_the_same_rows_counts_once(survey_of, tmp_path):
    answers = rows(("u1", at(5), "happy", 4), columns=COLUMNS[:4])
    answers.to_parquet(tmp_path / "again.parquet", index=False)
    found = survey_of(
        exposures=LISTS, survey=answers,
        config={"logs": {
            "exposures": {"path": str(tmp_path / "exposures.parquet")},
            "survey": {"path": [str(tmp_path / "survey.parquet"), str(tmp_path / "again.parquet")]},
        }},
    ).found()  # fmt: skip
    assert (found.rows, found.counted) == (1, 1)
    assert "the rows of 1 file of logs.survey are those of another file, and count once" in found.notes


@pytest.mark.parametrize(("broken", "said"), [(1, []), (5, ["2 further files"])])
def test_files_of_lists_that_cannot_be_read_are_named(survey_of, tmp_path, broken, said):
    for number in range(broken):
        (tmp_path / f"exposures{number}.parquet").write_bytes(b"PAR1")
    found = survey_of(
        exposures=LISTS, survey=rows(("u1", at(5), "happy", 4), columns=COLUMNS[:4]),
        config={"logs": {
            "exposures": {"path": str(tmp_path / "exposures*.parquet")},
            "survey": {"path": str(tmp_path / "survey.parquet")},
        }},
    ).found()  # fmt: skip
    notes = [note for note in found.notes if note.startswith("logs.exposures: ")]
    file = tmp_path / "exposures0.parquet"
    assert notes[0].startswith(f"logs.exposures: {file} was not read: is no whole Parquet file")
    assert len(notes) == min(broken, 3) + len(said)
    assert notes[3:] == [f"logs.exposures: {what} could not be read" for what in said]


def users_of(survey):
    """Question and user -> the mean answer from 1 to 5."""
    table = survey._users.to_pyarrow().to_pylist()
    return {(row["question"], row["user_id"]): 1 + 4 * row["value"] for row in table}
