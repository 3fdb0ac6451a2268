"""The addresses in answers: pages for people, and evidence in this API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from monitor.core.json_value import iso
from monitor.core.results import Result, ResultKind, Window
from monitor.core.text import encodable
from monitor.models.specs import CAUSE_LABEL
from monitor.report import rows
from monitor.report.anomalies import anomaly_href
from monitor.report.gaps import cause_href
from monitor.report.runbooks import runbook_address

ROOT: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class Links:
    """`url` is the address at which people reach the monitor."""

    url: str

    def recommender(self, name: str) -> str:
        """The page of a recommender."""
        return f"{self.url}/{rows.recommender_href(name)}"

    def page(self, recommender: str, result: Result) -> str:
        """The page that shows a series.

        >>> rule = Result(kind=ResultKind.RULE, metric="rule", labels={"rule": "a/b"}, definition="1",
        ...               status="ok")
        >>> Links("https://m.test").page("shop", rule)
        'https://m.test/recommenders/shop/rules/a%2Fb'
        """
        if result.kind is ResultKind.RULE:
            return f"{self.url}/{rows.rule_href(recommender, result.labels.get('rule', ''))}"
        if result.kind is ResultKind.ANOMALY:
            return f"{self.url}/{anomaly_href(recommender, result.labels[CAUSE_LABEL])}"
        if result.kind is ResultKind.CAUSE:
            return f"{self.url}/{cause_href(recommender, result)}"
        if result.kind.is_of_the_past:
            return self.recommender(recommender)
        return f"{self.url}/{rows.series_href(recommender, result)}"

    def runbook(self, runbook: str, docs_url: str) -> str:
        """The runbook as a link, or as the config names it if that is no address.

        >>> Links("https://m.test").runbook("docs/runbooks/rules/blacklist.md", "")
        'https://m.test/runbooks/rules/blacklist'
        """
        address = runbook_address(runbook, docs_url)
        if not address:
            return encodable(runbook)
        return address if address.startswith(("http://", "https://")) else f"{self.url}/{address}"

    def results(self, recommender: str, window: Window, *filters: tuple[str, str]) -> str:
        """The results of a window, in this API."""
        span = [("window_start", iso(window.start)), ("window_end", iso(window.end))]
        return f"{self._recommender(recommender)}/results?{urlencode([*span, *filters])}"

    def evidence(self, recommender: str, check: str, window: Window, result: Result) -> str:
        """One result with its evidence, in this API."""
        return self.results(recommender, window, ("metric", result.metric), *_series(check, result.labels))

    def history(self, recommender: str, check: str, result: Result) -> str:
        """The past of a series, in this API."""
        metric = quote(encodable(result.metric), safe="")
        asked = urlencode(_series(check, result.labels))
        return f"{self._recommender(recommender)}/series/{metric}?{asked}"

    def _recommender(self, name: str) -> str:
        return f"{self.url}{ROOT}/{rows.recommender_href(name)}"


def _series(check: str, labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """The filters that take one series of a metric, and not the slices of it."""
    named = [("label", encodable(f"{name}={value}")) for name, value in sorted(labels.items())]
    return [("check", check), *named, ("sliced", "true" if "dimension" in labels else "false")]
