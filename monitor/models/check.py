"""The check of the models: AUC and related metrics of each split, and the gaps between splits.

Train and test are measured once, and again if one of their files changes, appears or disappears. A window
only reads its online rows. A gap is always between splits of one model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import ibis.expr.types as ir

from monitor.core.columns import MODEL, ONLINE, SAMPLES, TEST, TRAIN, TS
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.engines.duckdb import Engine
from monitor.metrics.family import MODEL_LABEL
from monitor.metrics.plans import ASK_ONCE, Ask, CachedExecutor, Plans
from monitor.metrics.scores.labelled import sentences
from monitor.models.causes import explain
from monitor.models.features import ProfileCache, features_in_service, scores_of_pairs
from monitor.models.samples import FileKey, Samples, SampleTables, values_of
from monitor.models.specs import PAIR_LABEL, PAIRS
from monitor.models.split_results import NOT_DIAGNOSED, SIDES, gap_result, split_results
from monitor.models.splits import Sums, measure_splits
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import Check, Recommender, WindowJob
from monitor.window.slices import Text, text_of, value_names

NAME = "models"
_OF_SLICE = "__monitor_by_"


@dataclass(slots=True)
class _Reference:
    """The measured train and test splits, until their files change."""

    key: frozenset[FileKey] | None = None
    sums: Sums = field(default_factory=Sums)
    newest: tuple[str, ...] = ()  # the models, newest first
    names: dict[str, Text] = field(default_factory=dict)  # how values of slices are written
    kept: ProfileCache = field(default_factory=ProfileCache)


class ModelsCheck(Check[WindowJob]):
    name = NAME
    part = SAMPLES

    def __init__(self, settings: RecommenderSettings, samples: Samples) -> None:
        self._settings = settings
        self._samples = samples
        self._reference = _Reference()
        self._plans = Plans()
        self._found: list[Result] = []  # of the window at hand, as far as it got

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        settings = recommender.settings
        return [cls(settings, Samples(settings, recommender.source, recommender.parts))]

    def run(self, job: WindowJob) -> list[Result]:
        return self.judge(job.engine, job.window)

    def judge(self, engine: Engine, window: Window, wanted: str | None = None) -> list[Result]:
        """The results of the judged models, or of `wanted`, at the window's end."""
        self._found = []
        try:
            self._samples.look(engine)
            self._refer(engine)
            rows = self._samples.online(engine, window)
            names = self._reference.names
            if rows is not None and not names:
                names = self._value_names(rows)
            tables = self._samples.rows(engine, rows)
            ask = self._asked(engine, window, tables, names)
            online = Sums() if rows is None else self._measured(rows, names, ask)
            found = list(self._results(online, wanted))
            self._found = [*found]
            for one in self._further(found, tables, ask):
                self._found.append(one)
            return self._found
        finally:
            self._samples.release(engine)

    def failed(self, why: str, wanted: str | None = None) -> list[Result]:
        """The results so far if features, scores or causes failed; else an error for each gap.

        A measured gap stays as it is: that nobody knows its cause is no reason to take a violation back.
        """
        if self._found:
            unknown = f"{NOT_DIAGNOSED}: {why}"
            return [
                replace(one, detail=sentences(one.detail, unknown)) if one.kind is ResultKind.GAP else one
                for one in self._found
            ]
        models = self._judged(Sums()) if wanted is None else [wanted]
        gaps = [gap for model in models for gap in self._gaps(model, Sums())]
        return [replace(gap, status=Status.ERROR, detail=why) for gap in gaps]

    def _asked(self, engine: Engine, window: Window, tables: SampleTables, names: dict[str, Text]) -> Ask:
        """Runs the queries of the online rows by the statements of earlier windows, as far as they hold.

        They hold while the reference stays, of which the bins and the values of slices are made, and the
        columns.
        """
        if tables.online is None or not engine.keeps_statements:
            return ASK_ONCE
        online, offline = self._sliced(tables.online, names)[0], tables.offline
        self._plans.begin(self._reference.key, online.op(), None if offline is None else offline.op())
        edges = (window.start.replace(tzinfo=None), window.end.replace(tzinfo=None))
        return CachedExecutor(self._plans, engine, lambda _: None, lambda _: None, edges).answer

    def _further(self, found: Sequence[Result], rows: SampleTables, ask: Ask) -> Iterator[Result]:
        """The features and scores of the models, and the causes of violated gaps."""
        kept, settings = self._reference.kept, self._settings
        for model in dict.fromkeys(one.labels[MODEL_LABEL] for one in found):
            pairs = [one for one in PAIRS if self._compared(found, model, one)]
            yield from scores_of_pairs(model, pairs, rows, kept, settings, ask)
            yield from features_in_service(model, rows, kept, settings, ask)
        for gap in found:
            if gap.kind is ResultKind.GAP and gap.status is Status.VIOLATED:
                yield from explain(gap, rows, settings)

    @staticmethod
    def _compared(found: Sequence[Result], model: str, pair: str) -> bool:
        """Whether the model has a gap of this pair, measured or not."""
        of = {PAIR_LABEL: pair, MODEL_LABEL: model}
        return any(one.kind is ResultKind.GAP and dict(one.labels) == of for one in found)

    def _refer(self, engine: Engine) -> None:
        key = self._samples.key((TRAIN, TEST))
        if self._reference.key == key:
            return
        rows = self._samples.reference(engine)
        if rows is None:
            self._reference = _Reference(key)
            return
        names = self._value_names(rows)
        self._reference = _Reference(key, self._measured(rows, names), _by_age(rows), names)

    def _value_names(self, rows: ir.Table) -> dict[str, Text]:
        models = self._settings.models
        present = [name for name in models.by if name in rows.columns]
        return {name: value_names(values_of(rows, name), models.budget) for name in present}

    def _measured(self, rows: ir.Table, names: dict[str, Text], ask: Ask = ASK_ONCE) -> Sums:
        """The sums; values of slices are written as in train and test, so that slices match."""
        table, known = self._sliced(rows, names)
        by = [_OF_SLICE + name for name in known]
        sums = measure_splits(table, self._settings.metrics.clip, by, ask)
        return replace(sums, slices={name: sums.slices[_OF_SLICE + name] for name in known})

    @staticmethod
    def _sliced(rows: ir.Table, names: dict[str, Text]) -> tuple[ir.Table, list[str]]:
        """The rows with the columns of the slices that they have, and the names of these."""
        known = {name: text for name, text in names.items() if name in rows.columns}
        sliced = {_OF_SLICE + name: text(text_of(rows[name])) for name, text in known.items()}
        return rows.mutate(**sliced), list(known)

    def _results(self, online: Sums, wanted: str | None) -> Iterator[Result]:
        settings, reference = self._settings, self._reference.sums
        for model in self._judged(online) if wanted is None else [wanted]:
            for split, sums in ((TRAIN, reference), (TEST, reference), (ONLINE, online)):
                if not self._expected(model, split, online):
                    continue
                yield from split_results(
                    sums.of(model, split), settings.metrics, settings.models, split=split, model=model
                )
                for dimension, groups in sums.slices.items():
                    for (own, of, value), slice_sums in sorted(groups.items()):
                        if (own, of) == (model, split):
                            yield from split_results(
                                slice_sums, settings.metrics, settings.models,
                                split=split, model=model, dimension=dimension, value=value,
                            )  # fmt: skip
            yield from self._gaps(model, online)

    def _gaps(self, model: str, online: Sums) -> Iterator[Result]:
        settings, reference = self._settings, self._reference.sums
        for pair in PAIRS:
            sides = SIDES[pair]
            if all(self._expected(model, split, online) for split in sides):
                sums = [(online if split == ONLINE else reference).of(model, split) for split in sides]
                yield gap_result(pair, sums[0], sums[1], settings.metrics, settings.models, model)

    def _expected(self, model: str, split: str, online: Sums) -> bool:
        """Whether the model should have rows of the split: only if a file has the split.

        A model without online rows, while another model has some, was replaced. Its gap must not be reported
        as long as its test rows exist.
        """
        serving = online.models(ONLINE)
        replaced = split == ONLINE and bool(serving) and model not in serving
        return self._samples.have(split) and not replaced

    def _judged(self, online: Sums) -> list[str]:
        """The judged models: those with most online rows, then the newest."""
        serving = online.models(ONLINE)
        most = sorted(serving, key=lambda model: (-serving[model], model))
        return list(dict.fromkeys([*most, *self._reference.newest]))[: self._settings.models.newest]


def _by_age(rows: ir.Table) -> tuple[str, ...]:
    """The models by their newest row, newest first; without times by name, the last first."""
    newest = rows[TS].epoch_seconds().cast("int64").max() if TS in rows.columns else rows.count() * 0
    found = rows.group_by(MODEL).aggregate(newest=newest).to_pyarrow().to_pylist()
    found.sort(key=lambda row: (row["newest"] or 0, row[MODEL]), reverse=True)
    return tuple(row[MODEL] for row in found)
