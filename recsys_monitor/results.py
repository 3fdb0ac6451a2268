"""The results of a check or of a metric: a verdict, a frame, a table, a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pandas as pd
from rich.console import Console

from monitor.core.results import Status
from monitor.report.judged import Judged, title
from monitor.report.judged_page import as_fragment, as_page
from monitor.report.table import print_table, summary

COLUMNS: Final = {
    "recommender": "str", "check": "str", "window_start": "datetime64[us, UTC]",
    "window_end": "datetime64[us, UTC]", "series": "str", "metric": "str", "labels": "object",
    "status": "str", "value": "float64", "lower": "float64", "upper": "float64", "samples": "Int64",
    "threshold": "float64", "bound": "str", "violations": "Int64", "severity": "str", "detail": "str",
    "definition": "str", "evidence": "object",
}  # fmt: skip
"""The columns of `Results.frame` with their types, also if there is no row."""


class Results(Sequence[Judged]):
    """What was judged or measured. It is a sequence of `Judged`: recommender, check, window, result.

    Attributes:
        status: the verdict: `ok`, `violated`, `no_data`, `late`, `error` or `undefined`. The worst of all
            windows; `no_data` if there was no row to judge, or nothing to judge by.
        notes: sentences on what no result shows, such as a gap without rows.
    """

    def __init__(
        self,
        judged: Sequence[Judged],
        status: Status,
        notes: Sequence[str] = (),
        *,
        everything: bool = False,
    ) -> None:
        self._judged = tuple(judged)
        self.status = status
        self.notes = tuple(notes)
        self._everything = everything

    def __len__(self) -> int:
        return len(self._judged)

    def __getitem__(self, place: Any) -> Any:
        return self._judged[place]

    def __iter__(self) -> Iterator[Judged]:
        return iter(self._judged)

    @property
    def value(self) -> float | None:
        """The value, if there is exactly one result; None if it has no value.

        Raises ValueError if there are several results, with their names.
        """
        if len(self._judged) != 1:
            names = ", ".join(dict.fromkeys(title(one.result) for one in self._judged))
            raise ValueError(f"there are {len(self)} results: {names or 'none'}; .frame() has all")
        return self._judged[0].result.value

    def frame(self) -> pd.DataFrame:
        """One row a result, for pandas and for plots; times are UTC, and a missing number is null.

        `series` is the name of a metric or rule with its labels, such as `coverage by=pv`; `labels` and
        `evidence` hold the same as `check --format json`.
        """
        return frame_of(self._judged)

    def show(self, *, everything: bool | None = None) -> None:
        """Show the results: as HTML in a notebook, else as the table that `recsys-monitor check` prints.

        Args:
            everything: also show what is measured and not judged. Default: only if nothing is judged, as for
                a metric.
        """
        whole = self._everything if everything is None else everything
        if _in_notebook():
            from IPython.display import HTML, display

            display(HTML(self._fragment(everything=whole)))  # type: ignore[no-untyped-call]
            return
        console = Console(file=sys.stdout, highlight=False, emoji=False)
        for note in self.notes:
            console.print(note, markup=False, soft_wrap=True)
        print_table(self._judged, console, everything=whole, how="everything=True shows them")

    def to_html(self, *, everything: bool | None = None) -> str:
        """The results as one HTML file: it loads nothing, runs no script, and escapes all text of a log."""
        whole = self._everything if everything is None else everything
        return as_page(self._judged, self.status, self.notes, everything=whole)

    def _fragment(self, *, everything: bool) -> str:
        return as_fragment(self._judged, self.status, self.notes, everything=everything)

    def _repr_html_(self) -> str:
        return self._fragment(everything=self._everything)

    def __repr__(self) -> str:
        return "\n".join([f"<Results {self.status}: {summary(self._judged)}>", *self.notes])


def frame_of(judged: Sequence[Any]) -> pd.DataFrame:
    """The rows of `Results.frame`, of anything with a recommender, check, window and result."""
    rows = [
        {
            "recommender": one.recommender, "check": one.check, "window_start": one.window.start,
            "window_end": one.window.end, "series": title(one.result), "metric": one.result.metric,
            "labels": dict(one.result.labels), "status": one.result.status.value, "value": one.result.value,
            "lower": one.result.lower, "upper": one.result.upper, "samples": one.result.samples,
            "threshold": one.result.threshold, "bound": one.result.bound,
            "violations": one.result.violations, "severity": one.result.severity,
            "detail": one.result.detail, "definition": one.result.definition,
            "evidence": [dict(row) for row in one.result.evidence],
        }
        for one in judged
    ]  # fmt: skip
    return typed(rows, COLUMNS)


def typed(rows: Sequence[dict[str, Any]], columns: dict[str, str]) -> pd.DataFrame:
    """A frame whose columns have the same types whatever its rows are."""
    return pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in columns.items()}
    )


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this code."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and getattr(shell, "kernel", None) is not None
