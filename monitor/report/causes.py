"""The causes of a gap of a model's AUC among the results of a window."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.core.results import Result, ResultKind
from monitor.core.text import visible
from monitor.models.specs import CAUSE_LABEL
from monitor.report import numbers


def is_cause(result: Result) -> bool:
    return result.kind is ResultKind.CAUSE


def explains(cause: Result, gap: Result) -> bool:
    """Whether this is a cause of the gap: it has the same pair of splits and the same model."""
    return (
        is_cause(cause)
        and gap.kind is ResultKind.GAP
        and all(cause.labels.get(key) == text for key, text in gap.labels.items())
    )


def by_share(cause: Result) -> float:
    """The sort key of causes: the largest share first, unknown shares last."""
    return 1.0 if cause.value is None else -cause.value


def causes_of(gap: Result, results: Iterable[Result]) -> list[Result]:
    """The causes of the gap among the results of its window, the largest share first.

    >>> from monitor.core.results import Status
    >>> own = {"status": Status.OK, "definition": "1"}
    >>> of = {"pair": "test_online", "model": "v1"}
    >>> gap = Result(kind=ResultKind.GAP, metric="auc_gap", labels=of, **own)
    >>> def cause(name, share):
    ...     labels = {**of, "cause": name}
    ...     return Result(kind=ResultKind.CAUSE, metric="auc_gap_cause", labels=labels, value=share, **own)
    >>> [one.value for one in causes_of(gap, [cause("a", None), cause("b", 0.2), cause("c", 0.7)])]
    [0.7, 0.2, None]
    """
    return sorted((one for one in results if explains(one, gap)), key=by_share)


def cause_name(cause: Result) -> str:
    """The cause in words."""
    return visible(cause.labels[CAUSE_LABEL].replace("_", " "))


def share_bound(cause: Result) -> str:
    """How exact the share is, from the evidence: exact (empty), `about`, or `at least`.

    >>> from monitor.core.results import Status
    >>> row = {"measured_by": "a surrogate of the scores", "measure": "R2", "test": 0.8, "share": "about"}
    >>> cause = Result(metric="auc_gap_cause", status=Status.OK, definition="1", value=0.5, evidence=(row,))
    >>> share_bound(cause), share_text(cause).split()
    ('about', ['about', '50', '%'])
    """
    bound = next((str(row.get("share", "")) for row in cause.evidence if "measured_by" in row), "")
    return bound if bound in ("about", "at least") else ""


def share_text(cause: Result) -> str:
    """The share of the gap that the cause explains, empty if unknown."""
    return "" if cause.value is None else f"{share_bound(cause)} {numbers.share(cause.value)}".strip()
