"""From many series out of their bands to the causes that are told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from monitor.anomalies.causes import DRIVEN_BY_VOLUME, REST, Cause
from monitor.anomalies.results import Banded
from monitor.anomalies.specs import ANOMALY, ANOMALY_SEVERITY
from monitor.core.json_value import json_value
from monitor.core.results import MOST_EVIDENCE, Result, Status
from monitor.models.specs import CAUSE_LABEL

ROWS: Final = 20  # of evidence, or one of each place where those are more

SliceKey = tuple[str, str]
"""A dimension and its value; WHOLE is no slice at all."""
WHOLE: Final[SliceKey] = ("", "")


def anomalies(
    found: Sequence[Banded],
    causes: Sequence[Cause],
    *,
    version: str,
    before: Mapping[str, Collection[SliceKey]] | None = None,
    notes: Sequence[str] = (),
) -> list[Result]:
    """One result for each cause: violated with its series, ok, or `no_data` where nobody can say.

    A cause follows from another that stands in the whole, or in every place in which it stands itself: a
    scene that is gone explains nothing of the others. A series that the rows of such a cause move by their
    number speaks for no other cause, and explains none. A cause is `no_data` where none of its series could
    be judged, or where one that stood out has no value now: then it neither stands anew nor is over. It is
    over where a known change says so of one that stood out.

    Args:
        found: the series of the window, and those that stood out before it and are missing.
        causes: those that this part of a window can show, in their order.
        version: the definition of the results.
        before: the causes that stand by another part of the same window, with their places.
        notes: known changes near the window, told beside a cause.
    """
    standing = {name: set(places) for name, places in (before or {}).items()}
    banded = sum(one.is_judged for one in found)
    left = [one for one in found if one.departed]
    missing = [one for one in found if one.is_missing]
    learning = [one for one in found if one.learns]
    results: list[Result] = []
    for cause in (*causes, REST):
        rest = cause is REST
        mine = left if rest else [one for one in found if one.departed and cause.fits(one.series, one.side)]
        lost = missing if rest else [one for one in missing if cause.fits(one.series, one.side)]
        left = [one for one in left if one not in mine]
        missing = [one for one in missing if one not in lost]
        over = learning if rest else [one for one in learning if cause.fits(one.series, one.side)]
        learning = [one for one in learning if one not in over]
        own = [one for one in mine if not _bringing(one, standing)]
        here = {_place(one) for one in own or lost if not _bringing(one, standing)}
        by = [name for name in cause.follows if here and _explains(standing.get(name, set()), here)]
        if own:
            results += _told(cause, own, by, found, banded, version, notes)
        elif mine and not lost:
            by = [name for name in standing if any(name in _bringing(one, standing) for one in mine)]
            results += _told(cause, mine, by, found, banded, version, notes)
        else:
            can_say = bool(over) or any(
                one.is_judged and (rest or cause.is_read_from(one.series)) for one in found
            )
            results += _quiet(cause, lost, banded, can_say, version)
        if here:  # what follows from another explains what follows from itself
            standing[cause.name] = here
    return results


def _place(one: Banded) -> SliceKey:
    """Where a series is, as the evidence of a cause has it: that cuts long texts."""
    return json_value(one.place[0]), json_value(one.place[1])


def _bringing(one: Banded, standing: Mapping[str, Collection[SliceKey]]) -> list[str]:
    """The causes whose number of rows alone moves the series to its side."""
    return [
        name
        for name, places in standing.items()
        if any(sign.fits(one.series, one.side) for sign in DRIVEN_BY_VOLUME.get(name, ()))
        and _explains(places, {_place(one)})
    ]


def _explains(places: Collection[SliceKey], here: Collection[SliceKey]) -> bool:
    return WHOLE in places or (bool(places) and set(here) <= set(places))


def _told(
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
    """A cause that no series speaks for: it is not there, or nobody can say."""
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
    return (
        f"{first.title()} is {first.measured:.4g}, expected {first.expected:.4g} "
        f"({first.lower:.4g} to {first.upper:.4g}){more}"
    )


def _shown(worst: Sequence[Banded]) -> list[Banded]:
    """The rows of evidence, the worst first: of each place one, the whole before all, and the next worst.

    The places of a cause explain other causes; of more than are kept, those that are least far are cut.
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
    """The share of what was expected that is gone; None for a cause that has no such share."""
    return None if cause.severity is None else min(1.0, max(0.0, cause.severity(mine, found)))
