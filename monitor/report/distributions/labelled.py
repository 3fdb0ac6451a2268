"""The scored and labelled rows that the pictures of scores are made from, by model and split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.text import NAME_LENGTH, plural, visible
from monitor.metrics.scores.labelled import labelled, scored
from monitor.models.samples import NO_MODEL
from monitor.models.splits import judgeable
from monitor.report import numbers
from monitor.report.distributions.rows import Missing, SpanRows

MOST_MODELS: Final = 4
SHOWN: Final = "shown"
"""In place of a split: the exposures themselves."""
_SPLITS: Final = (c.TRAIN, c.TEST, c.ONLINE, SHOWN)
_TABLE: Final = "drawn_scores"
GROUP: Final = (c.MODEL, c.SPLIT)


@dataclass(frozen=True, slots=True)
class Group:
    """The usable rows of one split of one model; `positives` is None if nothing is known of labels."""

    model: str
    split: str
    n: int
    positives: int | None

    @property
    def key(self) -> tuple[str, str]:
        return self.model, self.split

    @property
    def one_class(self) -> str:
        """Why there is no curve of it, empty if there is one."""
        if self.positives is None or 0 < self.positives < self.n:
            return ""
        label = 1 if self.positives else 0
        return f"{in_words(self)}: all {numbers.count(self.n)} labels are {label}, so it has no curve."


@dataclass(frozen=True, slots=True)
class Scores:
    """The rows of the drawn groups.

    Attributes:
        table: model, split, score (finite), label (0 or 1; null without feedback).
        groups: by model, in the order in which they are drawn.
        notes: what is left out.
        unlabelled: why there are no labels; empty if there are.
    """

    table: ir.Table
    groups: tuple[Group, ...]
    notes: tuple[str, ...]
    unlabelled: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.model for one in self.groups))

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the series."""
        present = {one.split for one in self.groups}
        return tuple(split for split in _SPLITS if split in present)

    def of_model(self, model: str) -> tuple[Group, ...]:
        return tuple(one for one in self.groups if one.model == model)

    @property
    def rests_on(self) -> str:
        rows = sum(one.n for one in self.groups)
        return plural(rows, "exposure" if self.splits == (SHOWN,) else "sample")

    def need_labels(self) -> None:
        """Raises Missing if nothing is labelled."""
        if self.unlabelled:
            raise Missing(self.unlabelled)


def scores_of(rows: SpanRows) -> Scores:
    """The samples of the models if the recommender logs them, else the exposures with actions as labels.

    Raises Missing if there are no scores.
    """
    return _of_samples(rows) if c.SAMPLES in rows.source.logs else _of_exposures(rows)


def title_of(model: str) -> str:
    """The name of a model above its plot."""
    return visible(model, NAME_LENGTH) if model != NO_MODEL else ""


def in_words(group: Group) -> str:
    """A group within a sentence."""
    if group.split == SHOWN:
        return "The exposures"
    return f"{visible(group.model, NAME_LENGTH) or 'The model'}, {group.split}"


def _of_exposures(rows: SpanRows) -> Scores:
    shared = rows.need_exposures(c.SCORE)
    notes = list(rows.incomplete()) if c.FEEDBACK in rows.source.logs else []
    unlabelled = ""
    try:
        rows.need_feedback()
        table = labelled(shared, rows.metrics)
    except Missing as missing:
        unlabelled = missing.why
        table = scored(shared.shown()).mutate(**{c.LABEL: ibis.null("int64")})
    shown = int(shared.shown().count().to_pyarrow().as_py())
    if not shown:
        raise Missing("Nothing was shown in this span: every list was empty.")
    table = table.select(
        **{c.MODEL: ibis.literal(NO_MODEL), c.SPLIT: ibis.literal(SHOWN)},
        **{name: table[name] for name in (c.SCORE, c.LABEL)},
    )
    return _stored(rows, table, {(NO_MODEL, SHOWN): shown}, (NO_MODEL,), notes, unlabelled)


def _of_samples(rows: SpanRows) -> Scores:
    tables = [one for one in (rows.samples.reference(rows.engine), rows.online) if one is not None]
    notes = []
    if rows.online is None:
        notes.append(f"There are no online samples in {numbers.window(rows.online_span)}.")
    elif rows.online_span != rows.span:
        notes.append(
            f"Online samples are of {numbers.window(rows.online_span)}, over which models are judged."
        )
    if not tables:
        raise Missing("The log of samples has no rows of train or test, and none of this time.")
    ordered, counts = _models(tables)
    known = ordered[:MOST_MODELS]
    if len(ordered) > len(known):
        notes.append(f"{plural(len(ordered) - len(known), 'more model')} left out, with fewer online rows.")
    sound = [judgeable(one.filter(one[c.MODEL].isin(known))) for one in tables]
    table = ibis.union(*(one.select(*GROUP, c.SCORE, c.LABEL) for one in sound)) if len(sound) > 1 else (
        sound[0].select(*GROUP, c.SCORE, c.LABEL)
    )  # fmt: skip
    return _stored(rows, table, counts, known, notes, "")


def _models(tables: Sequence[ir.Table]) -> tuple[list[str], dict[tuple[str, str], int]]:
    """The models, those with most online rows first, then those with the newest sample; rows by group."""
    newest: dict[str, int] = {}
    counts: dict[tuple[str, str], int] = {}
    for table in tables:
        at = table[c.TS].epoch_seconds().cast("int64").max() if c.TS in table.columns else table.count() * 0
        for row in table.aggregate(by=list(GROUP), rows=table.count(), at=at).to_pyarrow().to_pylist():
            key = str(row[c.MODEL]), str(row[c.SPLIT])
            counts[key] = counts.get(key, 0) + int(row["rows"])
            newest[key[0]] = max(newest.get(key[0], 0), int(row["at"] or 0))
    ordered = sorted(newest, key=lambda one: (-counts.get((one, c.ONLINE), 0), -newest[one], one))
    return ordered, counts


def _stored(
    rows: SpanRows,
    table: ir.Table,
    counts: dict[tuple[str, str], int],
    models: Sequence[str],
    notes: list[str],
    unlabelled: str,
) -> Scores:
    """Store the rows, since every picture of scores reads them, and count them."""
    stored = rows.engine.create(_TABLE, table)
    found = stored.aggregate(by=list(GROUP), n=stored.count(), positives=stored[c.LABEL].sum())
    own = {(str(row[c.MODEL]), str(row[c.SPLIT])): row for row in found.to_pyarrow().to_pylist()}
    groups = []
    for model in models:
        for split in _SPLITS:
            row = own.get((model, split))
            n = int(row["n"]) if row else 0
            lacking = counts.get((model, split), 0) - n
            if row:
                positives = None if unlabelled else int(row["positives"] or 0)
                groups.append(Group(model, split, n, positives))
            if lacking:
                group = in_words(Group(model, split, n, None))
                what = (
                    "no finite score" if split == SHOWN else "no finite score, or a label that is not 0 or 1"
                )
                notes.append(f"{group}: {plural(lacking, 'row')} left out, with {what}.")
    if not groups:
        raise Missing("No row has a finite score.")
    return Scores(stored, tuple(groups), tuple(notes), unlabelled)
