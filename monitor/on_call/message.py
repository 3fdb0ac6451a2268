"""What Alertmanager's webhook posts, as the text that a chat shows: the lines of the templates of deploy/.

The text is plain, so nothing in it can be markup. What cannot be seen, such as a line break in an item's id,
is named, so that a log cannot write lines of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

from monitor.core.text import DETAIL_LENGTH, MESSAGE_LENGTH, plural, visible

MOST_ALERTS: Final = 10
_LINKS: Final = (("Evidence", "evidence"), ("Runbook", "runbook_url"), ("Dashboard", "dashboard"))
_UNKNOWN: Final = "an unknown time"
_MARKS: Final = {"page": "[PAGE]", "ticket": "[TICKET]"}


@dataclass(frozen=True)
class Entry:
    """One alert: its lines, and its links as label and address."""

    lines: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Message:
    """The alerts of one group."""

    title: str
    entries: tuple[Entry, ...]
    count: int


def read_message(payload: Mapping[str, Any]) -> Message:
    """The message of a payload of Alertmanager's webhook, version 4.

    Raises KeyError, TypeError, AttributeError or ValueError if it is something else.

    >>> labels = {"alertname": "A", "severity": "page"}
    >>> alert = {"labels": labels, "annotations": {"summary": "it broke"}, "startsAt": "2026-01-01T00:00:00Z"}
    >>> payload = {"status": "firing", "externalURL": "http://am", "alerts": [alert | {"status": "firing"}]}
    >>> message = read_message(payload)
    >>> message.title, message.entries[0].lines
    ('[PAGE] it broke', ('it broke', 'Since: 2026-01-01 00:00 UTC'))
    """
    alerts = list(payload["alerts"])
    if not alerts:
        raise ValueError("no alerts")
    firing = [one for one in alerts if one["status"] == "firing"]
    shown = firing or alerts
    severities = {one["labels"].get("severity") for one in alerts}
    mark = _MARKS.get(severities.pop() or "", "[ALERT]") if len(severities) == 1 else "[ALERT]"
    mark = mark if firing else "[RESOLVED]"
    more = f" (and {len(shown) - 1} more)" if len(shown) > 1 else ""
    external = str(payload["externalURL"])
    entries = [_entry(one, external) for one in firing[:MOST_ALERTS]]
    if (others := len(firing) - MOST_ALERTS) > 0:
        entries.append(Entry((plural(others, "more alert"),), _safe([("All", external)])))
    resolved = [one for one in alerts if one["status"] != "firing"]
    entries += [_resolved(one) for one in resolved[:MOST_ALERTS]]
    if (others := len(resolved) - MOST_ALERTS) > 0:
        entries.append(Entry((f"{others} more resolved",)))
    return Message(f"{mark} {_what(shown[0])}{more}", tuple(entries), len(alerts))


def as_text(message: Message, most_bytes: int) -> str:
    """The message as plain text of at most so many bytes of UTF-8, shortened as `shortened` does.

    >>> as_text(Message("T", (Entry(("a", "b")), Entry(("c" * 9,))), 2), 12)
    'T\\n\\na\\nb'
    """
    return _text(shortened(message, most_bytes, lambda part: len(_text(part).encode())))


def shortened(message: Message, most: int, size: Callable[[Message], int]) -> Message:
    """The message with a size of at most `most`.

    Long lines are cut, so that the links of the first alert fit. If they do not, the last ones are left out.
    Further alerts that do not fit are left out: the title has their number.
    """
    longest = most // 6
    fitting = Message(_cut(message.title, longest), (), message.count)
    for entry in message.entries:
        shown = Entry(tuple(_cut(line, longest) for line in entry.lines), entry.links)
        longer = replace(fitting, entries=(*fitting.entries, shown))
        while size(longer) > most and shown.links and not fitting.entries:
            shown = replace(shown, links=shown.links[:-1])
            longer = replace(fitting, entries=(shown,))
        if size(longer) > most:
            break
        fitting = longer
    return fitting


def _text(message: Message) -> str:
    lines = [message.title]
    for entry in message.entries:
        lines += ["", *entry.lines, *(f"{label}: {address}" for label, address in entry.links)]
    return "\n".join(lines)


def _cut(text: str, most_bytes: int) -> str:
    whole = text.encode()
    return text if len(whole) <= most_bytes else whole[: most_bytes - 3].decode("utf-8", "ignore") + "…"


def _what(alert: Mapping[str, Any]) -> str:
    return visible(
        alert["annotations"].get("summary") or alert["labels"].get("alertname", ""), MESSAGE_LENGTH
    )


def _entry(alert: Mapping[str, Any], external: str) -> Entry:
    notes = alert["annotations"]
    lines = [_what(alert)]
    for word, name in (("How bad", "description"), ("Offenders", "offenders")):
        if text := notes.get(name):
            lines.append(f"{word}: {visible(text, DETAIL_LENGTH)}")
    lines.append(f"Since: {_moment(alert['startsAt'])}")
    links = [(label, str(notes.get(name) or "")) for label, name in _LINKS]
    return Entry(tuple(lines), _safe([*links, ("Silence", silence_link(external, alert["labels"]))]))


def _resolved(alert: Mapping[str, Any]) -> Entry:
    return Entry((f"Resolved at {_moment(alert['endsAt'])}: {_what(alert)}",))


def silence_link(external: str, labels: Mapping[str, str]) -> str:
    """The form of Alertmanager for a silence of exactly these labels.

    >>> silence_link("http://am", {"rule": 'a"b'})
    'http://am/#/silences/new?filter=%7Brule%3D%22a%5C%22b%22%7D'
    """
    pairs = sorted(labels.items(), key=lambda pair: (pair[0] != "alertname", pair[0]))
    escaped = ((name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in pairs)
    matchers = ",".join(f'{name}="{value}"' for name, value in escaped)
    return f"{external}/#/silences/new?filter={quote('{' + matchers + '}', safe='')}"


def _safe(links: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The links to web pages. An address without a server, or of another kind, is left out."""

    def kept() -> Iterator[tuple[str, str]]:
        for label, address in links:
            try:
                parts = urlsplit(address)
            except ValueError:  # such as http://[wiki]/
                continue
            if (
                parts.scheme in ("http", "https")
                and parts.netloc
                and visible(address, len(address)) == address
            ):
                yield label, address.replace(" ", "%20")

    return tuple(kept())


def _moment(text: str) -> str:
    """The time in UTC. The year 1 is how Go writes that a time is not set."""
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:  # such as the year 1 in another time zone
        return _UNKNOWN
    return _UNKNOWN if moment.year == 1 else f"{moment:%Y-%m-%d %H:%M} UTC"
