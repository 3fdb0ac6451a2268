"""The `inhibit_rules` of an Alertmanager's config.

Alertmanager reports inhibition for firing alerts only. For resolved alerts it must be computed, because it
decides whether a message says that they resolved.
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
    """One rule: alerts that match `source` inhibit those that match `target` and have `equal` labels."""

    source: Sequence[Matcher]
    target: Sequence[Matcher]
    equal: Sequence[str]

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Self:
        """A rule of the config. Raises ValueError if a matcher has another form."""
        source, target = (tuple(map(_matcher, raw[f"{side}_matchers"])) for side in ("source", "target"))
        return cls(source, target, tuple(raw.get("equal", ())))

    def holds_back(self, labels: Mapping[str, str], firing: Iterable[Mapping[str, str]]) -> bool:
        """Whether one of the firing alerts inhibits an alert with these labels.

        An alert on both sides of a rule is not inhibited by another such alert, nor by itself.

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
