"""The findings of `validate` on columns that the config names outside of `columns`, and on rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from monitor.config.look import LogSeen
from monitor.config.problems import nearest
from monitor.config.validate.findings import ConfigFinding, Level, Reporter
from monitor.core import columns as c
from monitor.core.text import NAME_LENGTH, plural, visible
from monitor.metrics.catalogue import SPECS
from monitor.rules.list_files import FILES, ListFileError
from monitor.rules.list_tables import LIST_COLUMNS
from monitor.rules.rule import LoadedRule
from monitor.settings.recommender import NEW_ITEM, RecommenderSettings, sliced_column

_OF_REQUESTS = ("exposures", "requests", "user_items_day", "arrivals")
_SHOWN = 15


@dataclass(frozen=True, slots=True)
class Named:
    """A column that the config needs, its log, and the place that needs it; `metric` if a metric does."""

    place: str
    log: str
    column: str
    metric: str = ""


def named_columns(where: str, settings: RecommenderSettings) -> Iterator[Named]:
    """The columns that the config needs, without those of rules.

    >>> from monitor.settings.recommender import RecommenderSettings
    >>> shop = {"name": "shop", "logs": {"exposures": {"path": "x"}}, "slices": {"by": ["scene", "hour"]}}
    >>> [one.column for one in named_columns("recommenders[0]", RecommenderSettings.model_validate(shop))]
    ['scene']
    """
    for name, log in settings.logs.named().items():
        for column in log.only:
            yield Named(f"{where}.logs.{name}.only.{column}", name, column)
    for number, name in enumerate(settings.slices.by):
        place = f"{where}.slices.by[{number}]"
        if name == NEW_ITEM:
            yield Named(place, c.CATALOG, c.CREATED_AT)
        elif (sliced := sliced_column(name)) is not None:
            yield Named(place, *sliced)
    yield from _of_metrics(f"{where}.metrics", settings)
    for number, one in enumerate(settings.experiments):
        place = f"{where}.experiments[{number}]"
        yield Named(f"{place}.column", c.EXPOSURES, one.column)
        if one.buckets is not None:
            yield Named(f"{place}.buckets.column", c.EXPOSURES, one.buckets.column)
    yield from _of_models(f"{where}.models", settings)
    yield from _of_survey(f"{where}.survey", settings)
    asked = [
        (f"{where}.objectives[{number}].metric", one.metric) for number, one in enumerate(settings.objectives)
    ]
    parts = settings.health.parts if settings.health is not None else ()
    asked += [(f"{where}.health.parts[{number}].metric", one.metric) for number, one in enumerate(parts)]
    for place, metric in asked:
        for need in SPECS[metric].requires if metric in SPECS else ():
            of, _, wanted = need.partition(".")
            if of in c.LOGS and wanted.isidentifier():  # some needs are sentences, for one of two columns
                yield Named(place, of, wanted, metric)


def _of_metrics(where: str, settings: RecommenderSettings) -> Iterator[Named]:
    metrics = settings.metrics
    if "novelty" in metrics.model_fields_set:
        for number, column in enumerate(metrics.novelty):
            yield Named(f"{where}.novelty[{number}]", c.CATALOG, column)
    if metrics.similarity is not None:
        yield Named(f"{where}.similarity", c.CATALOG, metrics.similarity)
    for event, one in metrics.events.items():
        if one.length is not None:
            yield Named(f"{where}.events.{event}.length", c.CATALOG, one.length)
    if metrics.seed_item is not None:
        yield Named(f"{where}.seed_item", c.EXPOSURES, metrics.seed_item)


def _of_models(where: str, settings: RecommenderSettings) -> Iterator[Named]:
    models = settings.models
    for number, column in enumerate(models.by):
        yield Named(f"{where}.by[{number}]", c.SAMPLES, column)
    for number, column in enumerate(models.features or ()):
        yield Named(f"{where}.features[{number}]", c.SAMPLES, column)
    for feature, column in models.feature_times.items():
        yield Named(f"{where}.feature_times", c.SAMPLES, feature)
        yield Named(f"{where}.feature_times.{feature}", c.SAMPLES, column)
    if "pair_by" in models.model_fields_set:
        for number, column in enumerate(models.pair_by):
            yield Named(f"{where}.pair_by[{number}]", c.SAMPLES, column)


def _of_survey(where: str, settings: RecommenderSettings) -> Iterator[Named]:
    survey = settings.survey
    for number, column in enumerate(survey.by):
        yield Named(f"{where}.by[{number}]", c.SURVEY, column)
    sliced = [(f"{where}.weight_by[{number}]", name) for number, name in enumerate(survey.weight_by)]
    if survey.invited not in (None, c.SURVEY):
        sliced.append((f"{where}.invited", survey.invited or ""))
    for place, name in sliced:
        if (found := sliced_column(name)) is not None:
            yield Named(place, *found)


def missing_columns_named(
    recommender: str, where: str, settings: RecommenderSettings, logs: Mapping[str, LogSeen]
) -> Iterator[ConfigFinding]:
    """A problem for each named column that no looked-at file has; a warning for each unreadable log."""
    say = Reporter(recommender, "", "")
    every = list(dict.fromkeys(named_columns(where, settings)))
    unread = [one for one in every if one.log in logs and not logs[one.log].sound]
    every = [one for one in every if one not in unread and not _is_reported(logs.get(one.log), one.column)]
    lacking = [one for one in every if one.log not in logs or _lacks(logs[one.log], one.column)]
    for one in lacking:
        if one.log not in logs:
            if one.log not in settings.logs.named():
                text = f"{one.column!r} needs logs.{one.log}, which is not given"
                yield say.problem("columns", text, one.place)
            continue  # another problem reports a log that cannot be read
        needed = f"{one.metric} needs {one.column}: " if one.metric else ""
        yield say.problem("columns", needed + _no_column(one.column, logs[one.log]), one.place)
    if every and not lacking:
        yield say.ok("columns", f"the logs have every column that the config names: {_listed(every)}")
    for log in dict.fromkeys(one.log for one in unread):
        names = _listed(one for one in unread if one.log == log)
        yield say.warning("columns", f"{_not_checked('columns', log)}: {names}", f"{where}.logs.{log}")


def _listed(columns: Iterable[Named]) -> str:
    names = (f"{one.log}.{visible(one.column, NAME_LENGTH)}" for one in columns)
    return _shortened(list(dict.fromkeys(names)))


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _not_checked(what: str, log: str) -> str:
    return f"{what} not checked, since no file of logs.{log} can be used"


def _lacks(seen: LogSeen, column: str) -> bool:
    return bool(seen.sound) and column not in seen.names


def _is_reported(seen: LogSeen | None, column: str) -> bool:
    """Whether `columns` gives it a name that no file has, which is a problem of its own."""
    return seen is not None and column in seen.settings.columns and _lacks(seen, column)


def _no_column(column: str, seen: LogSeen) -> str:
    names = sorted(seen.names)
    close = nearest(column, names)
    shown = ", ".join(visible(one, NAME_LENGTH) for one in names[:_SHOWN])
    hint = f"did you mean {close!r}?" if close else f"it has {shown}"
    return f"logs.{seen.name} has no column {column!r} in the files looked at; {hint}"


def rules_without_ground(
    recommender: str,
    where: str,
    settings: RecommenderSettings,
    rules: tuple[LoadedRule, ...],
    logs: Mapping[str, LogSeen] | None,
) -> Iterator[ConfigFinding]:
    """A problem for each rule that lacks a log, a column or a list file.

    If `logs` is None, only lacking logs are reported. A pack's rule on a column that the exposures lack does
    not apply. This is a problem only if no rule of the pack applies (docs/decisions/0009).
    """
    say = Reporter(recommender, "", "")
    given = settings.logs.named()
    inapplicable: dict[str, list[tuple[LoadedRule, str]]] = {}
    sound: Counter[str] = Counter()
    unread: dict[str, list[str]] = {}
    problems = 0
    for rule in rules:
        place = _place(where, settings, rule)
        needed = dict.fromkeys(_logs_of(rule))
        absent = [log for log in needed if log not in given]
        if absent:
            problems += 1
            yield say.problem("rules", f"rule {rule.name} needs logs.{absent[0]}, which is not given", place)
            continue
        if logs is None:
            continue
        missing = _missing(rule, logs)
        if missing is not None:
            asked, log, column = missing
            if _is_reported(logs[log], column):
                problems += 1
                continue
            if asked in rule.assumed and log == c.EXPOSURES:
                inapplicable.setdefault(rule.pack, []).append((rule, column))
                continue
            problems += 1
            yield say.problem("rules", f"rule {rule.name}: {_no_column(column, logs[log])}", place)
            continue
        if (why := _list_file(rule)) is not None:
            problems += 1
            yield say.problem("rules", f"rule {rule.name}: {why}", place)
        if blind := [log for log in needed if log in logs and not logs[log].sound]:
            unread.setdefault(blind[0], []).append(rule.name)
        else:
            sound[rule.pack] += 1
    packs = list(_inapplicable(say, where, settings, inapplicable, sound))
    problems += sum(one.level is Level.PROBLEM for one in packs)
    yield from packs
    for log, names in unread.items():
        yield say.warning(
            "rules", f"{_not_checked('rules', log)}: {_shortened(names)}", f"{where}.logs.{log}"
        )
    if sound and not problems and logs is not None:
        yield say.ok("rules", f"the columns and list files of {plural(sound.total(), 'rule')} are there")


def _inapplicable(
    say: Reporter,
    where: str,
    settings: RecommenderSettings,
    rules: Mapping[str, Sequence[tuple[LoadedRule, str]]],
    sound: Counter[str],
) -> Iterator[ConfigFinding]:
    """For each pack the rules whose column the exposures lack; a problem if the pack has no other rule."""
    for pack, some in rules.items():
        names = ", ".join(f"{rule.name} ({column})" for rule, column in some)
        if sound[pack]:
            text = f"pack {pack}: these rules do not apply, since the exposures lack a column: {names}"
            yield say.ok("rules", text)
        else:
            text = f"pack {pack}: none of its rules can be judged: the exposures lack these columns: {names}"
            yield say.problem("rules", text, _place(where, settings, some[0][0]))


def _place(where: str, settings: RecommenderSettings, rule: LoadedRule) -> str:
    files = [one.suite or f"{one.pack}.yaml" for one in settings.rules]
    number = next((i for i, file in enumerate(files) if rule.source.startswith(f"{file}: ")), 0)
    return f"{where}.rules[{number}]"


def _logs_of(rule: LoadedRule) -> Iterator[str]:
    yield c.EXPOSURES if rule.table in _OF_REQUESTS else rule.table
    if getattr(rule.expectation, "catalog_table", None) == c.CATALOG:
        yield c.CATALOG
    for column in rule.columns if rule.table == "requests" else ():
        yield from (need.partition(".")[0] for need in LIST_COLUMNS.get(column, ()))


def _missing(rule: LoadedRule, logs: Mapping[str, LogSeen]) -> tuple[str, str, str] | None:
    """The rule's first column that lacks its source, with the log and the column that no file has."""
    for column in rule.columns:
        if rule.table == "requests":
            needs = [tuple(need.split(".", 1)) for need in LIST_COLUMNS.get(column, ())]
        elif rule.table in (c.EXPOSURES, c.CATALOG, c.FEEDBACK):
            needs = [(rule.table, column)]
        else:
            needs = []
        for log, name in needs:
            if log in logs and _lacks(logs[log], name):
                return column, log, name
    return None


def _list_file(rule: LoadedRule) -> str | None:
    path = rule.kwargs.get("list_path")
    if not isinstance(path, str):
        return None
    try:
        FILES.read(
            path,
            getattr(rule.expectation, "list_column", "item_id"),
            allow_empty=getattr(rule.expectation, "allow_empty", False),
        )
    except ListFileError as exc:
        return str(exc)
    return None
