"""Rates: how often people act on what they are shown, and how many of them do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ibis.expr.types as ir

from monitor.core.results import Result
from monitor.metrics.attribution import COUNT, of_event
from monitor.metrics.family import NOTHING_SHOWN, AggregateRow, make
from monitor.metrics.feedback.business import (
    ACTION_RATE,
    ACTIONS_PER_USER,
    CONVERSION,
    KNOWN,
    NO_REQUESTS,
    REQUESTS,
    OfEvents,
    rate_interval,
    ratio_columns,
    ratio_sums,
    users,
)
from monitor.metrics.shared import EXPOSURES, Shared, listed
from monitor.settings.metrics import MetricSettings

_ACTING, _ALONE = "acting", "without_user"

NO_USERS = "no request has a known user"
NOBODY_ACTED = "no known user acted"


class ActionRates(OfEvents):
    """Actions by request, user and exposure; the users who act; how often they do."""

    name = "action_rates"
    outputs = ((ACTION_RATE, ACTION_RATE.by), (CONVERSION, ()), (ACTIONS_PER_USER, ()))

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
            unknown = f"{alone} of {int(pv.denominator)} requests"
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
