"""The answers of a survey: which count, why the others do not, and the lists that each is about.

All tables are expressions of the engine; only counts leave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ANSWER, QUESTION, REQUEST_ID, TS, USER_ID
from monitor.core.results import Window
from monitor.settings.survey import QuestionSettings, SurveySettings

FAULT: Final = "fault"
ROW: Final = "row_number"
VALUE: Final = "value"
TOP: Final = "top"

OUTSIDE: Final = "outside the span"
NO_QUESTION: Final = "without a question"
UNKNOWN_QUESTION: Final = "to a question that the config does not name"
FURTHER_QUESTION: Final = "to a question beyond the first 20"
NO_USER: Final = "without a user"
NO_ANSWER: Final = "without an answer"
NO_NUMBER: Final = "that are no number"
NAN: Final = "that are NaN"
INFINITE: Final = "that are infinite"
OUT_OF_SCALE: Final = "out of scale"
NEVER_SERVED: Final = "of users that nobody served"
NO_SUCH_REQUEST: Final = "on a request that nobody served"
NOT_THEIRS: Final = "on a request of another user"
NO_LIST: Final = "without a list in the attribution before them"
NOT_INVITED: Final = "of users who were not invited"
DOUBLED: Final = "doubled, so that a later one counts"
NO_TIME: Final = "without a time"

FAULTS: Final = (
    NO_TIME, OUTSIDE, NO_QUESTION, UNKNOWN_QUESTION, FURTHER_QUESTION, NO_USER, NO_ANSWER, NO_NUMBER, NAN,
    INFINITE, OUT_OF_SCALE, NEVER_SERVED, NO_SUCH_REQUEST, NOT_THEIRS, NO_LIST, NOT_INVITED, DOUBLED,
)  # fmt: skip
"""Why an answer does not count, in the order in which it is asked: an answer has the first that is true."""

MOST_QUESTIONS: Final = 20


def kept_names(rows: ir.Table, columns: Sequence[str]) -> dict[str, str]:
    """Those of some further columns that the log has, each with its name in the table of `numbered`.

    The names are of its own, since a log may have columns with any name, also with one that is used here.
    """
    return {name: f"survey_column_{n}" for n, name in enumerate(columns) if name in rows.columns}


def numbered(rows: ir.Table, kept: Mapping[str, str]) -> ir.Table:
    """The rows of the log, each with a number, and with a request id (null if the log has none).

    Args:
        rows: of the log.
        kept: of `kept_names`. No other column is kept.
    """
    if REQUEST_ID not in rows.columns:
        rows = rows.mutate(**{REQUEST_ID: ibis.null("string")})
    known = (TS, USER_ID, QUESTION, REQUEST_ID, ANSWER)
    number = ibis.row_number().over(order_by=[rows[name] for name in known])
    return rows.select(*known, **{name: rows[column] for column, name in kept.items()}, **{ROW: number})


def inside(rows: ir.Table, span: Window) -> ir.BooleanValue:
    """Whether an answer was given, or a list shown, in the span."""
    return (rows[TS] >= _moment(span.start)) & (rows[TS] < _moment(span.end))


def most_answered(rows: ir.Table, span: Window, most: int) -> list[str]:
    """The questions of the span with the most rows, those with equally many by their text."""
    rows = rows.filter(inside(rows, span), rows[QUESTION].nullif("").notnull())
    counted = rows.group_by(QUESTION).aggregate(n=rows.count())
    top = counted.order_by(ibis.desc("n"), QUESTION).limit(most)
    return [str(one) for one in top.to_pyarrow().column(QUESTION).to_pylist()]


def questions_of(rows: ir.Table, span: Window, settings: SurveySettings) -> dict[str, QuestionSettings]:
    """The questions that are read, with scale and top: those of the config, else those most answered."""
    names = list(settings.questions) or most_answered(rows, span, MOST_QUESTIONS)
    return {name: settings.question(name) for name in names}


def lists_of(exposures: ir.Table) -> ir.Table:
    """One row a request: its user and its time."""
    rows = exposures.filter(exposures[REQUEST_ID].notnull())
    return rows.aggregate(by=REQUEST_ID, **{USER_ID: rows[USER_ID].min(), TS: rows[TS].min()})


def judged(
    rows: ir.Table,
    lists: ir.Table,
    span: Window,
    questions: Mapping[str, QuestionSettings],
    attribution: timedelta,
    *,
    named: bool,
    invited: ir.Table | None,
) -> ir.Table:
    """The rows of `numbered` with their `value`, whether it is at the `top`, and their `fault` or null.

    Values are moved to the range from 0, the scale's lowest answer, to 1, so that no scale overflows a sum.

    Args:
        rows: those of the log.
        lists: of `lists_of`, from the attribution before the span on.
        span: the time of the answers.
        questions: those that are read, with scale and top.
        attribution: an answer without a request is about the lists so long before it.
        named: whether the config names the questions.
        invited: user_id of all who were asked; None if nobody says.
    """
    served = lists.filter(lists[USER_ID].notnull()).select(served_user=lists[USER_ID]).distinct()
    requests = lists.select(named_request=lists[REQUEST_ID], list_user=lists[USER_ID])
    before = _before(rows, lists, attribution).select(listed_row=ROW).distinct()
    found = rows.left_join(served, rows[USER_ID] == served.served_user)
    found = found.left_join(requests, found[REQUEST_ID] == requests.named_request)
    found = found.left_join(before, found[ROW] == before.listed_row)
    is_invited: ir.Value = ibis.literal(True)
    if invited is not None:
        asked = invited.select(invited_user=invited[USER_ID]).distinct()
        found = found.left_join(asked, found[USER_ID] == asked.invited_user)
        is_invited = found.invited_user.notnull()
    number = found[ANSWER].strip().nullif("").try_cast("float64")
    bound = {
        name: _by_question(found, {q: at(one) for q, one in questions.items()})
        for name, at in (("low", _low), ("high", _high), (TOP, _top))
    }
    found = found.mutate(**{VALUE: number, **bound})
    value, request = found[VALUE], found[REQUEST_ID]
    fault = ibis.cases(
        (~inside(found, span), OUTSIDE),
        (found[QUESTION].nullif("").isnull(), NO_QUESTION),
        (~found[QUESTION].isin(list(questions)), UNKNOWN_QUESTION if named else FURTHER_QUESTION),
        (found[USER_ID].isnull(), NO_USER),
        (found[ANSWER].strip().nullif("").isnull(), NO_ANSWER),
        (value.isnull(), NO_NUMBER),
        (value.isnan(), NAN),
        (value.isinf(), INFINITE),
        ((value < found.low) | (value > found.high), OUT_OF_SCALE),
        (found.served_user.isnull(), NEVER_SERVED),
        (request.notnull() & found.named_request.isnull(), NO_SUCH_REQUEST),
        (request.notnull() & (found.list_user != found[USER_ID]).fill_null(True), NOT_THEIRS),
        (request.isnull() & found.listed_row.isnull(), NO_LIST),
        (~is_invited, NOT_INVITED),
        else_=ibis.null("string"),
    )
    at_top = ibis.ifelse(value >= found[TOP], 1.0, 0.0)
    on_scale = (value - found.low) / (found.high - found.low)
    found = found.select(*rows.columns, **{VALUE: on_scale, TOP: at_top, FAULT: fault})
    last_first = ibis.window(
        group_by=[found[FAULT], found[QUESTION], found[USER_ID], found[REQUEST_ID]],
        order_by=[found[TS].desc(), found[VALUE], found[ROW]],
    )
    found = found.mutate(place=ibis.row_number().over(last_first))
    doubled = found[FAULT].isnull() & (found.place > 0)
    return found.mutate(**{FAULT: ibis.ifelse(doubled, DOUBLED, found[FAULT])}).drop("place")


def faults(answers: ir.Table) -> dict[str, int]:
    """How many answers have each fault, in the order of FAULTS; those without one under the empty text."""
    counted = answers.group_by(FAULT).aggregate(n=answers.count()).to_pyarrow().to_pylist()
    found = {str(row[FAULT] or ""): int(row["n"]) for row in counted}
    return {name: found[name] for name in ("", *FAULTS) if name in found}


def about(answers: ir.Table, lists: ir.Table, attribution: timedelta) -> ir.Table:
    """The lists that the answers are about: question, user_id, request_id, each once."""
    counted = answers.filter(answers[FAULT].isnull())
    of_request = counted.filter(counted[REQUEST_ID].notnull()).select(QUESTION, USER_ID, REQUEST_ID)
    earlier = _before(counted, lists, attribution).select(QUESTION, USER_ID, REQUEST_ID)
    return of_request.union(earlier, distinct=True)


def by_user(answers: ir.Table) -> ir.Table:
    """One row a question and user with an answer that counts: the mean `value` and the share of `top`."""
    counted = answers.filter(answers[FAULT].isnull())
    return counted.aggregate(
        by=[QUESTION, USER_ID], **{VALUE: counted[VALUE].mean(), TOP: counted[TOP].mean()}, n=counted.count()
    )


def sums(users: ir.Table, by: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The sums over the users of `by_user`, one row a group.

    `users`, `answers`, `total` and `squares` of the values, `top` and `top_squares`, and `whole`: the users
    whose share of top answers is 0 or 1.
    """
    value, top = users[VALUE], users[TOP]
    found = users.aggregate(
        by=list(by),
        users=users.count(),
        answers=users.n.sum(),
        total=value.sum(),
        squares=(value * value).sum(),
        top=top.sum(),
        top_squares=(top * top).sum(),
        whole=((top == 0) | (top == 1)).sum(),
    )
    rows: list[dict[str, Any]] = found.to_pyarrow().to_pylist()
    return rows


def _before(rows: ir.Table, lists: ir.Table, attribution: timedelta) -> ir.Table:
    """Answers without a request, each with the lists that its user was shown in the attribution before it."""
    open_ones = rows.filter(rows[REQUEST_ID].isnull(), rows[USER_ID].notnull())
    open_ones = open_ones.select(QUESTION, ROW, answered_by=open_ones[USER_ID], answered_at=open_ones[TS])
    reach = ibis.interval(seconds=int(attribution.total_seconds()))
    earlier = lists.filter(lists[USER_ID].notnull())
    both = open_ones.join(
        earlier,
        [
            open_ones.answered_by == earlier[USER_ID],
            earlier[TS] <= open_ones.answered_at,
            earlier[TS] >= open_ones.answered_at - reach,
        ],
    )
    return both.select(QUESTION, ROW, USER_ID, REQUEST_ID)


def _low(one: QuestionSettings) -> float:
    return one.scale[0] if one.scale else 0.0


def _high(one: QuestionSettings) -> float:
    return one.scale[1] if one.scale else 0.0


def _top(one: QuestionSettings) -> float:
    return one.top if one.top is not None else _high(one)


def _by_question(rows: ir.Table, values: Mapping[str, float]) -> ir.Value:
    """A number that depends on the question; null for other questions."""
    nothing = ibis.null("float64")
    if not values:
        return nothing
    distinct = set(values.values())
    if len(distinct) == 1:
        return ibis.literal(distinct.pop(), "float64")
    cases = [(rows[QUESTION] == name, ibis.literal(value, "float64")) for name, value in values.items()]
    return ibis.cases(*cases, else_=nothing)


def _moment(moment: Any) -> ir.Value:
    return ibis.literal(moment.replace(tzinfo=None)).cast("timestamp(6)")
