"""The answer on the judged windows."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.core.results import Window
from monitor.history import schema
from monitor.history.browse import window_page
from monitor.history.reads import Evaluated
from monitor.report.window_verdict import window_verdict
from monitor.service.web.api.answers import CheckedAnswer, PageOf, WindowAnswer
from monitor.service.web.api.context import Context
from monitor.service.web.api.paging import cursor_of, read_cursor, wrong_cursor
from monitor.service.web.api.parameters import WindowsQuery


def windows(context: Context, asked: WindowsQuery, recommender: str) -> PageOf[WindowAnswer]:
    """The windows that were judged, the newest first."""
    state = context.state(recommender)
    before = None if asked.cursor is None else _window(asked.cursor)
    with context.store.reading() as connection:
        found = window_page(connection, state.name, asked.begin, asked.end, before, asked.limit + 1)
    page = found[: asked.limit]
    return PageOf(
        data=[_answer(context, checks) for checks in page],
        next_cursor=_cursor(page[-1][0].window) if len(found) > len(page) else None,
    )


def _answer(context: Context, checks: Sequence[Evaluated]) -> WindowAnswer:
    first = checks[0]
    return WindowAnswer(
        recommender=first.recommender,
        window_start=first.window.start,
        window_end=first.window.end,
        status=window_verdict(checks),
        checks=[
            CheckedAnswer(
                check=one.check,
                status=one.status,
                definition=one.definition,
                rows=one.rows,
                evaluated_at=one.evaluated_at,
                seconds=one.seconds,
                revision=one.revision,
            )
            for one in checks
        ],
        results_url=context.links.results(first.recommender, first.window),
    )


def _cursor(window: Window) -> str:
    return cursor_of((schema.microseconds(window.end), schema.microseconds(window.start)))


def _window(cursor: str) -> Window:
    end, start = read_cursor(cursor, [int, int])
    try:
        return Window(*(schema.from_microseconds(int(one)) for one in (start, end)))
    except (OverflowError, ValueError):
        raise wrong_cursor() from None
