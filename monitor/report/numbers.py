"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from monitor.core import numbers
from monitor.core.results import Window

number = numbers.number


def share(value: float) -> str:
    """A share as a percentage, with a no-break space. What is not all is never shown as 100 %.

    >>> [share(x).replace("\xa0", " ") for x in (0.0, 1.0, 0.000123, 0.5, 0.999999, 1e-9, -0.99999)]
    ['0 %', '100 %', '0.0123 %', '50 %', '99.9999 %', '1e-07 %', '-99.999 %']
    """
    percent = 100 * value
    if not 99.99 < abs(percent) < 100:
        return f"{number(percent)}\xa0%"
    # 14 digits tell the nearest float to 100 from 100.
    texts = (f"{percent:.{digits}f}" for digits in range(3, 15))
    return f"{next(text for text in texts if '100.' not in text)}\xa0%"


def signed_share(value: float) -> str:
    """A change as a percentage with its sign.

    >>> [signed_share(x).replace("\xa0", " ") for x in (0.123, -0.05, 0.0)]
    ['+12.3 %', '-5 %', '0 %']
    """
    return f"+{share(value)}" if value > 0 else share(value)


def count(value: float) -> str:
    """A whole number with thousands separators.

    >>> count(40000)
    '40,000'
    """
    return f"{value:,.0f}"


def seconds(value: float) -> str:
    """A measured duration.

    >>> [seconds(x) for x in (0.0123, 3.456, 75, 0.9999, 59.98)]
    ['12 ms', '3.5 s', '1 min 15 s', '1.0 s', '1 min']
    """
    if value < 0.9995:  # else rounded to 1000 ms
        return f"{value * 1000:.0f} ms" if value >= 0.001 else "under 1 ms"
    return f"{value:.1f} s" if value < 59.95 else span(timedelta(seconds=round(value)))


def span(length: timedelta) -> str:
    """A length of time in its two largest units.

    >>> span(timedelta(days=1, hours=2, minutes=5)), span(timedelta(minutes=3)), span(timedelta(0))
    ('1 d 2 h', '3 min', '0 s')
    """
    left = int(length.total_seconds())
    parts = []
    for size, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if left >= size:
            parts.append(f"{left // size} {name}")
            left %= size
    return " ".join(parts[:2]) or "0 s"


def age(moment: datetime, now: datetime) -> str:
    """How long ago, in at most two units.

    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> [age(noon - timedelta(seconds=s), noon) for s in (5, 200, 8000, 300000, -600)]
    ['just now', '3 min ago', '2 h 13 min ago', '3 d ago', 'in 10 min']
    """
    past = now - moment
    if timedelta(seconds=-60) < past < timedelta(seconds=30):  # pages floor the time to the minute
        return "just now"
    if past < timedelta(0):
        return f"in {span(-past)}"
    if past < timedelta(minutes=1):
        return f"{past.seconds} s ago"
    if past < timedelta(days=2):
        return f"{span(timedelta(minutes=past // timedelta(minutes=1)))} ago"
    return f"{past.days:,} d ago"


def moment(time: datetime) -> str:
    """A time in UTC, with seconds only if they are not 0.

    >>> moment(datetime(2026, 1, 1, 12, tzinfo=UTC))
    '2026-01-01 12:00 UTC'
    """
    time = time.astimezone(UTC)
    return f"{time:%Y-%m-%d %H:%M:%S} UTC" if time.second else f"{time:%Y-%m-%d %H:%M} UTC"


def window(span_of_time: Window) -> str:
    """A window. The day is shown once if start and end share it.

    >>> window(Window(datetime(2026, 1, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 11, tzinfo=UTC)))
    '2026-01-01 10:00 to 11:00 UTC'
    """
    start, end = moment(span_of_time.start).removesuffix(" UTC"), moment(span_of_time.end)
    return f"{start} to {end[11:] if start[:10] == end[:10] else end}"
