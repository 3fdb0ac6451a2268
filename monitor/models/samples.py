"""The samples of a recommender's models as tables: train, test, online and offline rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.logs.empty import feedback_of
from monitor.logs.index import FileEntry
from monitor.logs.source import Source
from monitor.logs.windows import Parts
from monitor.metrics.scores.labelled import labelled
from monitor.metrics.shared import Shared
from monitor.settings.recommender import RecommenderSettings
from monitor.window.slices import text_of

NO_MODEL = ""
_TABLES = ("reference_samples", "online_samples", "offline_samples")
_OFFLINE = (c.OFFLINE, c.TRAIN, c.TEST)  # rows of train and test are joined offline too
_JOINED = ("scored_exposures", "scored_around", "scored_responses")


@dataclass(frozen=True, slots=True)
class FileKey:
    """Changes when a file does."""

    path: str
    size: int
    modified: float


class SampleTables:
    """The rows of every model: online, of train and test, and what online rows can be compared with."""

    def __init__(
        self,
        online: ir.Table | None,
        reference: Callable[[], ir.Table | None],
        offline: Callable[[], ir.Table | None],
    ) -> None:
        self.online = online
        self._make_reference, self._make_offline = reference, offline

    @cached_property
    def reference(self) -> ir.Table | None:
        """All rows of train and test; None if there are none."""
        return self._make_reference()

    @cached_property
    def offline(self) -> ir.Table | None:
        """All rows that were joined offline; None if there are none."""
        return self._make_offline()

    def offline_of(self, model: str) -> ir.Table | None:
        """The offline rows that pair with online rows of this model.

        Two models may score the same request with different features. Offline rows without a model belong to
        every model, and a model without a name takes all offline rows.
        """
        rows = self.offline
        if rows is None or model == NO_MODEL:
            return rows
        return rows.filter(rows[c.MODEL].isin((model, NO_MODEL)))


class Samples:
    """Reads the samples of one recommender; the splits of each file are read once."""

    def __init__(self, settings: RecommenderSettings, source: Source, parts: Parts) -> None:
        self._settings = settings
        self._source = source
        self._parts = parts
        self._splits: dict[FileKey, frozenset[str]] = {}
        self._made: list[str] = []

    def rows(self, engine: Engine, online: ir.Table | None) -> SampleTables:
        """The tables of a window; the large ones are made on first use."""
        return SampleTables(
            online, lambda: self.reference(engine), lambda: self._of(engine, _OFFLINE, _TABLES[2])
        )

    def look(self, engine: Engine) -> None:
        """Read which splits new and changed files have."""
        entries = {_key(one): one for one in self._source.logs[c.SAMPLES].read_entries}
        self._splits = {key: splits for key, splits in self._splits.items() if key in entries}
        unknown = {key: one for key, one in entries.items() if key not in self._splits}
        filled = [one.file.path for one in unknown.values() if one.shape and one.shape.columns]
        found = self._source.values_by_file(engine, c.SAMPLES, c.SPLIT, filled)
        for key, one in unknown.items():
            self._splits[key] = frozenset(found.get(one.file.path, ()))

    def have(self, split: str) -> bool:
        """Whether any file has rows of the split."""
        if split == c.ONLINE and self._parts.joined:
            return True
        return any(split in splits for splits in self._splits.values())

    def key(self, splits: Iterable[str]) -> frozenset[FileKey]:
        """Changes if a file with rows of these splits changes, appears or disappears."""
        wanted = set(splits)
        return frozenset(key for key, own in self._splits.items() if own & wanted)

    def reference(self, engine: Engine) -> ir.Table | None:
        """All rows of train and test; None where there is none."""
        return self._of(engine, (c.TRAIN, c.TEST), _TABLES[0])

    def online(self, engine: Engine, window: Window) -> ir.Table | None:
        """The online rows at the window's end; None if there are none."""
        looked_at = self._parts.samples_of(window)
        if self._parts.joined:
            return self._exposures(engine, window, looked_at)
        rows = self._source.load(engine, c.SAMPLES, looked_at, table=_TABLES[1])
        self._made.append(_TABLES[1])
        return None if rows is None else _complete(rows.filter(rows[c.SPLIT] == c.ONLINE))

    def release(self, engine: Engine) -> None:
        engine.drop(*self._made)
        self._made.clear()

    def _of(self, engine: Engine, splits: Sequence[str], table: str) -> ir.Table | None:
        wanted = self.key(splits)
        entries = [one for one in self._source.logs[c.SAMPLES].read_entries if _key(one) in wanted]
        if not entries:
            return None
        rows = self._source.load_files(engine, c.SAMPLES, entries, table=table)
        self._made.append(table)
        return _complete(rows.filter(rows[c.SPLIT].isin(splits)))

    def _exposures(self, engine: Engine, window: Window, looked_at: Window) -> ir.Table | None:
        """The exposures as online samples, labelled by their feedback."""
        shown = self._source.load(engine, c.EXPOSURES, looked_at, table="scored_exposures")
        self._made += [*_JOINED, "relevant", "scored_lists"]
        if shown is None or c.SCORE not in shown.columns:
            return None
        span = self._parts.span(window, c.SAMPLES)

        def materialise(name: str, expression: ir.Table) -> ir.Table:
            self._made.append(name)
            return engine.create(name, expression)

        shared = Shared(
            shown,
            responses=feedback_of(engine, self._source, span, "scored_responses"),
            around=self._source.load(engine, c.EXPOSURES, span, table="scored_around"),
            window=(looked_at.start.replace(tzinfo=None), looked_at.end.replace(tzinfo=None)),
            materialise=materialise,
        )
        own = (c.USER_ID, c.SCORE)
        further = [name for name in shown.columns if name not in own]
        rows = labelled(shared, self._settings.metrics, further=further)
        return _complete(rows.mutate(**{c.SPLIT: ibis.literal(c.ONLINE)}))


def _key(entry: FileEntry) -> FileKey:
    return FileKey(entry.file.path, entry.file.size, entry.file.modified.timestamp())


def _complete(rows: ir.Table) -> ir.Table:
    """The rows with a model in each; `NO_MODEL` if the log has none."""
    model = rows[c.MODEL].fill_null(NO_MODEL) if c.MODEL in rows.columns else ibis.literal(NO_MODEL)
    return rows.mutate(**{c.MODEL: model})


def values_of(rows: ir.Table, column: str) -> ir.Table:
    """The rows of each value of a column, for `value_names`."""
    values = rows.select(value=text_of(rows[column]))
    return values.group_by("value").aggregate(n=values.count())
