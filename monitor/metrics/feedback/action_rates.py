"""Rates: how often users act on the items shown, and how many users do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ibis.expr.types as ir

from monitor.core.results import Result
from monitor.metrics.attribution import COUNT, of_event
from monitor.metrics.family import NO_REQUESTS, NOTHING_SHOWN, AddsUp, AggregateRow, Family, make
from monitor.metrics.feedback.business import (
    BUSINESS_USERS,
    KNOWN,
    LATER,
    MEANT,
    REPEATS,
    REQUESTS,
    USERS,
    ZERO,
    action_spec,
    rate_interval,
    ratio_columns,
    ratio_sums,
    users,
)
from monitor.metrics.history import EXPOSURES
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

ACTION_RATE = action_spec(
    name="action_rate",
    better="higher",
    of_rows=True,
    help="How often an event happens by page view, by user, or by exposure (of clicks: pv, uv rate, CTR).",
    by=("pv", "uv", "exposure"),
    interval="delta",
    range=(0.0, math.inf),
    formula="pv: actions / requests. uv: actions of known users / users. exposure: actions / exposures; of "
    f"clicks this is the CTR. {MEANT}. {USERS}; {ZERO}.",
    answers="Do users act on the items that they are shown?",
    misleads=f"{REPEATS}: it is never cut at 1, and a CTR above 1 means that the log has repeated rows. A "
    "longer list lowers the rate by exposure and raises the rate by pv. Clickbait raises all three. A few "
    "busy users can dominate it: see top_user_share and trimmed_action_rate. If many requests have no user, "
    f"the interval is too narrow, since requests of one person are correlated. {LATER}.",
    samples="requests (pv); users (uv); exposures (exposure)",
    no_data="no requests (pv); no known user (uv); nothing shown (exposure)",
)

CONVERSION = action_spec(
    name="conversion",
    better="higher",
    help="Share of the users with at least one action of the event (of clicks: uv conversion).",
    unit="ratio",
    interval="Wilson",
    formula=f"users with an action / users who made a request; {MEANT}",
    answers="How many users act at all?",
    misleads="It grows with the window's length and with the requests of a user, without any improvement: "
    f"compare windows of one length. {LATER}. Requests without a user are left out (and counted).",
    samples="users",
    no_data="no request of a known user",
)

ACTIONS_PER_USER = action_spec(
    name="actions_per_user",
    better="higher",
    help="Actions of the event per acting user (clicks per clicking user).",
    interval="normal",
    range=(0.0, math.inf),
    formula=f"actions of known users / users with an action; {MEANT}",
    answers="Do acting users act again?",
    misleads="It rises when occasional users stop acting, since only busy users are left: read it together "
    f"with conversion. One robot can dominate the mean: see top_user_share. {REPEATS}.",
    samples="users with an action",
    no_data="no known user acted",
)

_ACTING, _ALONE = "acting", "without_user"

NO_USERS = "no request has a known user"
NOBODY_ACTED = "no known user acted"


class ActionRates(Family):
    """Actions by request, user and exposure; the users who act; how often they do."""

    name = "action_rates"
    outputs = ((ACTION_RATE, ACTION_RATE.by), (CONVERSION, ()), (ACTIONS_PER_USER, ()))
    needs = ("feedback",)
    adds_up = AddsUp(tables=(BUSINESS_USERS,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        every = users(shared, settings, key)
        known = every[KNOWN]
        sums: dict[str, Any] = {_ALONE: ((1.0 - known) * every[REQUESTS]).sum()}
        for number in self.events(settings).values():
            actions = every[of_event(COUNT, number)]
            sums |= {
                **ratio_columns(of_event("pv", number), actions, every[REQUESTS]),
                **ratio_columns(of_event("uv", number), known * actions, known),
                **ratio_columns(of_event("exposure", number), actions, every[EXPOSURES]),
                of_event(_ACTING, number): (known * (actions > 0).cast("float64")).sum(),
            }
        return shared.side_by_side(key, every.aggregate(by=listed(key), **sums))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        alone = int(row[_ALONE] or 0)
        for event, number in self.events(settings).items():
            sums = {by: ratio_sums(row, of_event(by, number)) for by in ACTION_RATE.by}
            pv, uv = sums["pv"], sums["uv"]
            unknown = f"{alone:,} of {int(pv.denominator):,} requests"
            details = {
                "uv": f"left out: {unknown} without a user",
                "pv": f"{unknown} have no user; each counts as a user of its own in the interval",
            }
            details["exposure"] = details["pv"]
            no_users = NO_USERS if pv.denominator else NO_REQUESTS
            nothing = {"pv": NO_REQUESTS, "uv": no_users, "exposure": NOTHING_SHOWN}
            for by, of in sums.items():
                builder = make(ACTION_RATE, settings, by, event=event)
                if not of.denominator:
                    yield builder.no_data(nothing[by])
                    continue
                value, interval = of.numerator / of.denominator, rate_interval(of)
                yield builder.value(value, int(of.denominator), interval, detail=details[by] if alone else "")
            acting = int(row[of_event(_ACTING, number)] or 0)
            yield make(CONVERSION, settings, event=event).share(
                acting, uv.n, no_users, detail=details["uv"] if alone else ""
            )
            yield make(ACTIONS_PER_USER, settings, event=event).mean(
                acting,
                uv.numerator,
                uv.numerator_squared,
                NOBODY_ACTED,
                detail=actions_without_user(pv.numerator, uv.numerator),
            )


def actions_without_user(actions: float, of_known: float) -> str:
    """How many actions have no user, in words.

    >>> actions_without_user(9.0, 7.0)
    'left out: 2 of 9 actions without a user'
    """
    unknown = actions - of_known
    return f"left out: {unknown:.0f} of {actions:.0f} actions without a user" if unknown else ""
