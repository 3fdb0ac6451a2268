"""From many series out of their bands to the reported causes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from monitor.anomalies.causes import DRIVEN_BY_VOLUME, NO_SIGN, REST, Cause
from monitor.anomalies.results import Banded
from monitor.anomalies.specs import ANOMALY, ANOMALY_SEVERITY
from monitor.core.json_value import json_value
from monitor.core.results import MOST_EVIDENCE, Result, Status
from monitor.models.specs import CAUSE_LABEL

ROWS: Final = 20  # rows of evidence; more if there are more places
# A loss is at most so many times the one that explains it: what is lost may have been the best of the lists.
_AT_MOST: Final = 2.0

SliceKey = tuple[str, str]
"""A dimension and its value; WHOLE stands for no slice."""
WHOLE: Final[SliceKey] = ("", "")


def anomalies(
    found: Sequence[Banded],
    causes: Sequence[Cause],
    *,
    version: str,
    before: Mapping[str, Collection[SliceKey]] | None = None,
    gone: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
) -> list[Result]:
    """One result for each cause: violated with its series, ok, or `no_data`.

    - A cause follows from another one that is violated in the whole, or in every place of this cause: a lost
      scene does not explain other scenes. A missing share is explained by at least half as large a one: three
      empty lists in a thousand do not explain that four in ten clicks are gone.
    - A series that the number of rows moves is no sign of another cause beside such a cause, and explains
      none.
    - A departure of `NO_SIGN` belongs to no cause.
    - A cause is `no_data` if none of its series was judged, or if one that was out of its band has no value
      now.
    - A known change ends the cause of a series that was out of its band.

    Args:
        found: the series of the window, and the missing ones that were out of their bands before.
        causes: the causes of this part of a window, in their order.
        version: the definition of the results.
        before: the violated causes of another part of the same window, with their places.
        gone: the missing share of each of these that has one.
        notes: known changes near the window, added to the detail of a violated cause.
    """
    standing = {name: set(places) for name, places in (before or {}).items()}
    shares = dict(gone or {})
    banded = sum(one.is_judged for one in found)
    departed = [one for one in found if one.departed and not one.follows and _is_a_sign(one)]
    left = departed
    missing = [one for one in found if one.is_missing and _is_a_sign(one)]
    learning = [one for one in found if one.learns]
    results: list[Result] = []
    for cause in (*causes, REST):
        rest = cause is REST
        mine = left if rest else [one for one in departed if cause.fits(one.series, one.side)]
        lost = missing if rest else [one for one in missing if cause.fits(one.series, one.side)]
        left = [one for one in left if one not in mine]
        missing = [one for one in missing if one not in lost]
        over = learning if rest else [one for one in learning if cause.fits(one.series, one.side)]
        learning = [one for one in learning if one not in over]
        own = [one for one in mine if not _bringing(one, standing)]
        here = {_place(one) for one in own or lost if not _bringing(one, standing)}
        share = _severity(cause, own, found) if own and WHOLE in here else None
        by = [
            name
            for name in cause.follows
            if here and _explains(standing.get(name, set()), here) and _is_enough(shares.get(name), share)
        ]
        if share is not None:
            shares[cause.name] = share
        if own:
            results += _reported(cause, own, by, found, banded, version, notes)
        elif mine and not lost:
            by = [name for name in standing if any(name in _bringing(one, standing) for one in mine)]
            results += _reported(cause, mine, by, found, banded, version, notes)
        else:
            can_say = bool(over) or any(
                one.is_judged and (rest or cause.is_read_from(one.series)) for one in found
            )
            results += _quiet(cause, lost, banded, can_say, version)
        if here:  # a cause that follows from another one still explains later causes
            standing[cause.name] = here
    return results


def _is_a_sign(one: Banded) -> bool:
    return not any(sign.fits(one.series, one.side) for sign in NO_SIGN)


def _place(one: Banded) -> SliceKey:
    """The place of a series as the evidence stores it: long texts are cut."""
    return json_value(one.place[0]), json_value(one.place[1])


def _bringing(one: Banded, standing: Mapping[str, Collection[SliceKey]]) -> list[str]:
    """The violated causes whose number of rows alone explains this departure."""
    return [
        name
        for name, places in standing.items()
        if any(sign.fits(one.series, one.side) for sign in DRIVEN_BY_VOLUME.get(name, ()))
        and _explains(places, {_place(one)})
    ]


def _explains(places: Collection[SliceKey], here: Collection[SliceKey]) -> bool:
    return WHOLE in places or (bool(places) and set(here) <= set(places))


def _is_enough(share: float | None, wanted: float | None) -> bool:
    """Whether a missing share explains another one. A cause without a share explains as its places say."""
    return not share or wanted is None or wanted <= _AT_MOST * share


def _reported(
    cause: Cause,
    mine: Sequence[Banded],
    by: Sequence[str],
    found: Sequence[Banded],
    banded: int,
    version: str,
    notes: Sequence[str],
) -> Iterator[Result]:
    labels = {CAUSE_LABEL: cause.name}
    worst = sorted(mine, key=lambda one: (-abs(one.deviation), one.departure().title()))
    if by:
        detail = f"follows from {', '.join(by)}; {_worst(worst)}"
    else:
        detail = f"{cause.says}; {_worst(worst)}" + "".join(f"; {note}" for note in notes)
    yield Result(
        kind=ANOMALY.kind,
        metric=ANOMALY.name,
        labels=labels,
        definition=version,
        status=Status.OK if by else Status.VIOLATED,
        value=float(len(mine)),
        samples=banded,
        detail=detail,
        threshold=0.0,
        evidence=() if by else tuple(_row(one) for one in _shown(worst)),
    )
    severity = 0.0 if by else _severity(cause, mine, found)
    if severity is not None:
        yield _severe(labels, severity, version)


def _quiet(
    cause: Cause, lost: Sequence[Banded], banded: int, can_say: bool, version: str
) -> Iterator[Result]:
    """A cause without a sign: `ok`, or `no_data` if it cannot be judged."""
    labels = {CAUSE_LABEL: cause.name}
    if can_say and not lost:
        yield Result(
            kind=ANOMALY.kind, metric=ANOMALY.name, labels=labels, definition=version, status=Status.OK,
            value=0.0, samples=banded, threshold=0.0,
        )  # fmt: skip
        yield _severe(labels, 0.0, version)
        return
    if lost:
        first = min(one.departure().title() for one in lost)
        more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
        detail = f"{first} was out of its band and has no value now{more}"
    elif banded:
        detail = "none of its series has both a value and a band"
    else:
        detail = "no series has enough past windows for a band yet"
    yield Result(
        kind=ANOMALY.kind, metric=ANOMALY.name, labels=labels, definition=version, status=Status.NO_DATA,
        samples=banded, detail=detail,
    )  # fmt: skip


def _worst(worst: Sequence[Banded]) -> str:
    first = worst[0].departure()
    more = f", and {len(worst) - 1} more" if len(worst) > 1 else ""
    return f"{first.title()} is {first.says()}{more}"


def _shown(worst: Sequence[Banded]) -> list[Banded]:
    """The rows of evidence, the worst first: one for each place, the whole first, then the next worst.

    Every place is needed, since the places of a cause explain other causes. If there are too many, the
    smallest deviations are cut.
    """
    first: dict[SliceKey, int] = {}
    for rank, one in enumerate(worst):
        first.setdefault(_place(one), rank)
    of_places = sorted(first.values(), key=lambda rank: (worst[rank].place != WHOLE, rank))[:MOST_EVIDENCE]
    more = [rank for rank in range(len(worst)) if rank not in of_places]
    return [worst[rank] for rank in sorted([*of_places, *more[: max(0, ROWS - len(of_places))]])]


def _row(one: Banded) -> Mapping[str, Any]:
    departure = one.departure()
    return {name: getattr(departure, name) for name in (
        "metric", "by", "of", "dimension", "value", "measured", "expected", "lower", "upper", "deviation",
    )}  # fmt: skip


def _severe(labels: Mapping[str, str], value: float, version: str) -> Result:
    return Result(
        kind=ANOMALY_SEVERITY.kind, metric=ANOMALY_SEVERITY.name, labels=labels, definition=version,
        status=Status.OK, value=value,
    )  # fmt: skip


def _severity(cause: Cause, mine: Sequence[Banded], found: Sequence[Banded]) -> float | None:
    """The missing share of the expected value; None for a cause without such a share."""
    return None if cause.severity is None else min(1.0, max(0.0, cause.severity(mine, found)))
