"""What holds an alert back: the `inhibit_rules` of an Alertmanager's config.

The Alertmanager says so itself of alerts that fire. Of one that is over it says nothing any more, though that
decides whether anybody is told that it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from benchmarks.scoreboard.selectors import fits

_MATCHER: Final = re.compile(r'\s*(\w+)\s*(=~|!~|!=|=)\s*"(.*)"\s*')
Matcher = tuple[str, str, str]  # label, one of = != =~ !~, value


@dataclass(frozen=True, slots=True)
class Inhibition:
    """One rule: alerts that `source` matches hold back those that `target` does, with `equal` labels."""

    source: Sequence[Matcher]
    target: Sequence[Matcher]
    equal: Sequence[str]

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Self:
        """A rule of the config. Raises ValueError where a matcher is not written as it is there."""
        source, target = (tuple(map(_matcher, raw[f"{side}_matchers"])) for side in ("source", "target"))
        return cls(source, target, tuple(raw.get("equal", ())))

    def holds_back(self, labels: Mapping[str, str], firing: Iterable[Mapping[str, str]]) -> bool:
        """Whether one of the alerts that fire holds back an alert with these labels.

        An alert on both sides of a rule is not held back by another such alert, nor by itself.

        >>> rule = Inhibition.read({"source_matchers": ['a = "1"'], "target_matchers": ['b =~ "2|3"']})
        >>> rule.holds_back({"b": "3"}, [{"a": "1"}]), rule.holds_back({"b": "4"}, [{"a": "1"}])
        (True, False)
        """
        if not _match(self.target, labels):
            return False
        both = _match(self.source, labels)
        return any(
            _match(self.source, one)
            and all(one.get(name, "") == labels.get(name, "") for name in self.equal)
            and not (both and _match(self.target, one))
            for one in firing
        )


def _matcher(text: str) -> Matcher:
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no matcher")
    name, kind, value = found.groups()
    return name, kind, value


def _match(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    return all(fits(labels.get(name, ""), kind, value) for name, kind, value in matchers)
