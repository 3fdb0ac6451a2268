"""A survey over a span: the answers to each question, who gave them, and which metrics track them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Final

import ibis.expr.types as ir

from monitor.core.columns import CATALOG, EXPOSURES, FEEDBACK, QUESTION, REQUEST_ID, SURVEY, USER_ID, USERS
from monitor.core.errors import ExpectedError
from monitor.core.results import Result, Window
from monitor.core.text import plural, quoted
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs
from monitor.logs.empty import empty_exposures
from monitor.logs.source import Source
from monitor.metrics.shared import Shared
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.recommender import RecommenderSettings, sliced_column
from monitor.settings.survey import QuestionSettings
from monitor.survey import answers as a
from monitor.survey import people
from monitor.survey.findings import ArmAnswers, GroupDifference, QuestionFound, SurveyFound, Tracked
from monitor.survey.numbers import (
    ANSWER_METRIC,
    NOTHING,
    Row,
    difference,
    mean_answer,
    response_rate,
    result,
    scale_of,
    top_answers,
    weighted_answer,
)
from monitor.survey.tracking import compared, tracked
from monitor.survey.user_metrics import (
    HELD_METRICS,
    MOST_USERS,
    OF_NOVELTY,
    OF_ONE_USER,
    OF_SERENDIPITY,
    UserValues,
    chosen,
    largest_k,
    measure_users,
)
from monitor.window.slices import NONE, add_slices
from monitor.window.tables import WindowTables, prepare

HOW: Final = "add logs.survey; docs/survey.md says what it holds"
_ASKED_BY_LOG: Final = "survey"
_READ: Final = (SURVEY, EXPOSURES, FEEDBACK, CATALOG, USERS)
_MOST_UNREAD: Final = 3


class SurveyError(ExpectedError):
    """A survey that cannot be read, or a question or arm that does not exist."""


class Survey:
    """The answers to a survey in a span, joined with what their users were shown.

    Its tables belong to the engine; `close` drops them.

    Args:
        engine: of the logs.
        source: the logs with logs.survey, already looked at.
        span: the time of the answers.
        settings: of the recommender.
        kept: the pairs of earlier windows.

    Raises SurveyError without a survey, without exposures, or where the exposures have no row.
    """

    def __init__(
        self, engine: Engine, source: Source, span: Window, settings: RecommenderSettings, kept: KeptPairs
    ) -> None:
        if SURVEY not in source.logs:
            raise SurveyError(f"{settings.name} has no answers: {HOW}")
        if EXPOSURES not in source.logs:
            raise SurveyError(f"{settings.name} has no exposures, so nobody knows what users were shown")
        self.settings, self.span = settings, span
        self._survey = settings.survey
        self._engine, self._source, self._kept = engine, source, kept
        self.shown = Window(span.start - self._survey.attribution, span.end)
        first, last = self.shown.start, span.end - datetime.resolution
        # Logs are read by whole windows.
        self._loaded = Window(Window.of(first, settings.window).start, Window.of(last, settings.window).end)
        self._made: list[str] = []
        self._exposures = self._shown()
        self._read()

    def answer(self, question: str, experiment: str | None = None, arm: str | None = None) -> Result:
        """The mean answer to a question with its interval and the number of respondents, of an arm if named.

        Raises SurveyError for a question that the survey does not have, and for an unknown experiment or arm.
        """
        asked = self._known(question)
        labels = {"question": question}
        if experiment is None:
            return mean_answer(self._sums(question), asked, labels, self._survey.least)
        found = next((one for one in self.settings.experiments if one.name == experiment), None)
        if found is None or arm not in found.arms:
            what = f"{quoted(experiment)} with the arm {quoted(arm)}"
            raise SurveyError(f"{self.settings.name} has no experiment {what}")
        row = self._by_arm(question, found).get(arm, NOTHING)
        return mean_answer(row, asked, {**labels, "experiment": experiment, "arm": arm}, self._survey.least)

    def found(self, *, weight: bool = False, slices: bool = False) -> SurveyFound:
        """Everything that the survey says.

        Args:
            weight: whether answers are weighted, whatever the config says.
            slices: whether means are split by the slices of the config.
        """
        weighted = weight or self._survey.weighting == "inverse_response"
        bias = self._bias()
        every = [self._question(name, asked, weighted, slices) for name, asked in self._questions.items()]
        counts = a.faults(self._answers)
        unplaced = sum(one.unplaced for one in self._source.logs[SURVEY].read_entries)
        if unplaced:
            counts = {a.NO_TIME: unplaced, **counts}
        return SurveyFound(
            recommender=self.settings.name,
            span=self.span,
            shown=self.shown,
            rows=sum(counts.values()),
            counted=counts.pop("", 0),
            faults={name: counts[name] for name in a.FAULTS if name in counts},
            served=self._count(self._served),
            asked=self._count(self._asked),
            asked_by=self._asked_by,
            respondents=self._count(self._respondents),
            questions=every,
            bias=bias,
            notes=self._notes(slices),
            negligible=self._survey.negligible,
            large=self._survey.large_difference,
        )

    def close(self) -> None:
        """Drop the tables."""
        if "_prepared" in self.__dict__:
            self._engine.drop(*self._prepared.made)
        self._engine.drop(*self._made)
        self._source.release(self._engine)

    def _create(self, name: str, table: ir.Table) -> ir.Table:
        self._made.append(name)
        return self._engine.create(name, table)

    def _shown(self) -> ir.Table:
        """The exposures of the span and of the attribution before it."""
        name = "survey_shown"
        self._made.append(name)
        loaded = self._source.load(self._engine, EXPOSURES, self._loaded, table=name)
        if loaded is None:
            known = self._source.id_types() | self._source.schema(EXPOSURES)
            loaded = empty_exposures(self._engine, name, known=known)
        rows = Shared(loaded).exposures
        return rows.filter(a.inside(rows, self.shown))

    @cached_property
    def _prepared(self) -> WindowTables:
        """The tables that metrics and slices need, with the past; a mean alone needs none of it."""
        reach = self.settings.metrics.attribution
        around = None
        if FEEDBACK in self._source.logs:
            length = self.settings.window
            whole = -(-reach // length) * length
            around = Window(self._loaded.start - whole, self._loaded.end + whole)
        return prepare(self._engine, self._source, self._loaded, self.settings, self._kept, around)

    @property
    def _shared(self) -> Shared:
        return self._prepared.shared

    def _read(self) -> None:
        log = self._source.logs[SURVEY]
        entries = [one for one in log.read_entries if one.shape is not None and one.shape.columns]
        if not entries:
            raise SurveyError(f"{self.settings.name}: logs.survey has no row")
        rows = self._source.rows_of_files(self._engine, SURVEY, entries)
        arms = [one.column for one in self.settings.experiments]
        self._kept_columns = a.kept_names(rows, list(dict.fromkeys([*self._survey.by, *arms])))
        self._rows = self._create("survey_rows", a.numbered(rows, self._kept_columns))
        self._lists = self._create("survey_lists", a.lists_of(self._exposures))
        self._served = self._create("survey_served", people.served(self._lists))
        named = bool(self._survey.questions)
        self._questions = a.questions_of(self._rows, self.span, self._survey)
        invited, self._asked_by = self._invited()
        asked = self._served if invited is None else self._served.semi_join(invited, USER_ID)
        self._asked = self._create("survey_asked", asked)
        attribution = self._survey.attribution
        judged = a.judged(
            self._rows, self._lists, self.span, self._questions, attribution, named=named, invited=invited
        )
        self._answers = self._create("survey_answers", judged)
        self._about = self._create("survey_about", a.about(self._answers, self._lists, attribution))
        self._users = self._create("survey_users", a.by_user(self._answers))
        self._respondents = self._create("survey_respondents", self._users.select(USER_ID).distinct())

    def _invited(self) -> tuple[ir.Table | None, str]:
        """The users who were asked, and how that is known."""
        column = self._survey.invited
        if column is None:
            return None, "all users served, since nobody says who was asked (survey.invited)"
        if column == _ASKED_BY_LOG:
            rows = self._rows.filter(a.inside(self._rows, self.span), self._rows[USER_ID].notnull())
            return self._create("survey_invited", rows.select(USER_ID).distinct()), "the rows of logs.survey"
        log, name = sliced_column(column) or (EXPOSURES, column)
        if log == USERS:
            table = self._source.load_users(self._engine, table="survey_all_users", columns=(name,))
            self._made.append("survey_all_users")
        else:
            table = self._exposures
        if table is None or name not in table.columns:
            raise SurveyError(f"survey.invited: the {log} have no column {quoted(name)}")
        return self._create("survey_invited", people.marked(table, name)), f"{log}.{name}"

    def _asked_of(self, question: str) -> ir.Table:
        """The users who were asked this question."""
        if self._survey.invited != _ASKED_BY_LOG:
            return self._asked
        rows = self._rows.filter(a.inside(self._rows, self.span), self._rows[QUESTION] == question)
        return self._asked.semi_join(rows, USER_ID)

    def _question(self, name: str, asked: QuestionSettings, weight: bool, slices: bool) -> QuestionFound:
        labels, least = {"question": name}, self._survey.least
        row = self._sums(name)
        frame = self._count(self._asked_of(name))
        return QuestionFound(
            name=name,
            asks=asked.asks,
            scale=scale_of(asked),
            rate=response_rate(int(row["users"]), frame, labels),
            answer=mean_answer(row, asked, labels, least),
            top=top_answers(row, labels, least),
            weighted=self._weighted(name, asked) if weight else None,
            splits=self._splits(name, asked, slices),
            arms=self._arms(name, asked),
            tracked=self._tracked(name, asked),
        )

    def _known(self, question: str) -> QuestionSettings:
        if question not in self._questions:
            raise SurveyError(f"{self.settings.name} has no question {quoted(question)}")
        return self._questions[question]

    def _sums(self, question: str) -> Row:
        (row,) = a.sums(people.in_question(self._users, question))
        return row if row["users"] else NOTHING

    def _by_arm(self, question: str, experiment: ExperimentSettings) -> dict[str, Row]:
        users = people.in_question(self._users, question)
        values = self._values(question, experiment.column)
        if values is None:
            return {}
        found = a.sums(users.inner_join(values, USER_ID).rename(arm="of_user"), ["arm"])
        return {str(row["arm"]): row for row in found if row["arm"] is not None}

    def _arms(self, question: str, asked: QuestionSettings) -> list[ArmAnswers]:
        found = []
        least = self._survey.least
        comparisons = sum(len(one.arms) - 1 for one in self.settings.experiments)
        for one in self.settings.experiments:
            rows = self._by_arm(question, one)
            for arm in one.arms:
                labels = {"question": question, "experiment": one.name, "arm": arm}
                row, control = rows.get(arm, NOTHING), rows.get(one.baseline, NOTHING)
                against = None
                if arm != one.baseline:
                    against = difference(control, row, asked, labels, least, comparisons)
                answer = mean_answer(row, asked, labels, least)
                found.append(ArmAnswers(one.name, arm, one.baseline, answer, against))
        return found

    def _values(self, question: str, column: str) -> ir.Table | None:
        """The value of a column for each user, in the lists that an answer is about, else in the answers."""
        if column in self._exposures.columns:
            lists = people.in_question(self._about, question)
            rows = self._exposures.semi_join(lists, REQUEST_ID)
        elif column in self._kept_columns:
            rows = people.in_question(self._answers, question)
            rows = rows.filter(rows[a.FAULT].isnull())
            column = self._kept_columns[column]
        else:
            return None
        return people.value_of_each(rows, column).rename(of_user=a.VALUE)

    def _splits(self, question: str, asked: QuestionSettings, slices: bool) -> list[Result]:
        users = people.in_question(self._users, question)
        every: dict[str, ir.Table] = {}
        rows = people.in_question(self._answers, question)
        rows = rows.filter(rows[a.FAULT].isnull())
        for column in self._survey.by:
            if column in self._kept_columns:
                values = people.value_of_each(rows, self._kept_columns[column])
                every[f"{SURVEY}.{column}"] = people.named(values, self.settings.slices.budget)
        if slices:
            lists = people.in_question(self._about, question)
            for name, key in self._keys(self.settings.slices.by).items():
                rows = self._shared.rows(key).semi_join(lists, REQUEST_ID)
                every[name] = people.value_of_each(rows, key)
        found: list[Result] = []
        for name, values in every.items():
            groups = a.sums(users.inner_join(values.rename(of_user=a.VALUE), USER_ID), ["of_user"])
            for row in sorted(groups, key=lambda row: (-row["users"], row["of_user"])):
                labels = {"question": question, "dimension": name, "value": row["of_user"]}
                found.append(mean_answer(row, asked, labels, self._survey.least))
        return found

    def _keys(self, names: Sequence[str]) -> dict[str, str]:
        """The keys of slices in the rows of the exposures."""
        return {name: self._dimensions[name] for name in names if name in self._dimensions}

    def _lacking(self, names: Sequence[str]) -> list[str]:
        """What the logs lack for each slice that cannot be made, as a sentence."""
        found = []
        for name in names:
            if name not in self._dimensions:
                log, column = sliced_column(name) or ("", name)
                what = (
                    f"the {log} have no column {quoted(column)}"
                    if log == EXPOSURES
                    else (f"logs.{log} has no column {quoted(column)}")
                )
                found.append(what if log else f"the logs lack what {quoted(column)} needs")
        return found

    @cached_property
    def _dimensions(self) -> dict[str, str]:
        """All slices that the config names, each with its key: a key stands for one slice only."""
        every = tuple(dict.fromkeys([*self.settings.slices.by, *self._survey.weight_by]))
        wanted = self.settings.slices.model_copy(update={"by": every})

        def users(columns: Sequence[str]) -> ir.Table | None:
            self._made.append("survey_slice_users")
            return self._source.load_users(self._engine, table="survey_slice_users", columns=columns)

        known = frozenset(self._source.schema(EXPOSURES))
        return add_slices(self._shared, wanted, self._loaded, known, users)

    def _weighted(self, question: str, asked: QuestionSettings) -> Result:
        frame, users = self._asked_of(question), people.in_question(self._users, question)
        labels = {"question": question, "by": "weighted"}
        if lacking := self._lacking(self._survey.weight_by):
            row = self._sums(question)
            return result(ANSWER_METRIC, labels, None, int(row["users"]), detail=f"weight_by: {lacking[0]}")
        bounds = people.activity_bounds(frame, users)
        frame = frame.mutate(class_0=people.activity_class(frame, bounds).cast("string"))
        names = ["class_0"]
        for number, key in enumerate(self._keys(self._survey.weight_by).values(), start=1):
            values = people.value_of_each(self._shared.rows(key), key)
            values = values.rename({f"class_{number}": a.VALUE})
            frame = frame.left_join(values, USER_ID).drop(f"{USER_ID}_right")
            frame = frame.mutate(**{f"class_{number}": frame[f"class_{number}"].fill_null(NONE)})
            names.append(f"class_{number}")
        frame = self._create("survey_frame", frame)
        asked_of = frame.aggregate(by=names, n=frame.count()).to_pyarrow().to_pylist()
        sums = a.sums(users.inner_join(frame.select(USER_ID, *names), USER_ID), names)
        rows = {tuple(row[name] for name in names): row for row in sums}
        strata = [(int(one["n"]), rows.get(tuple(one[name] for name in names), NOTHING)) for one in asked_of]
        return weighted_answer(strata, asked, labels, self._survey.least)

    def _bias(self) -> list[GroupDifference]:
        """Respondents against those who were asked and gave no answer that counts."""
        others = self._asked.anti_join(self._respondents, USER_ID)

        def of(name: str, users: ir.Table) -> UserValues:
            table = self._create(f"survey_some_{name}", people.some(users, MOST_USERS))
            metrics = largest_k(self.settings.metrics)
            return chosen(measure_users(self._shared, metrics, table, list(OF_ONE_USER), self._create))

        return compared(of("respondents", self._respondents), of("others", others), self._survey)

    def _tracked(self, question: str, asked: QuestionSettings) -> list[Tracked]:
        users = people.in_question(self._users, question)
        some = self._create("survey_some_users", people.some(users, MOST_USERS))
        rows = users.semi_join(some, USER_ID)
        rows = rows.select(user=rows[USER_ID].cast("string"), value=rows[a.VALUE])
        answers = {str(row["user"]): float(row["value"]) for row in rows.to_pyarrow().to_pylist()}
        if len(answers) < self._survey.least:
            return []
        lists = self._create("survey_question_lists", people.in_question(self._about, question))
        metrics, wanted = largest_k(self.settings.metrics), tuple(OF_ONE_USER)
        if asked.asks != "satisfaction":
            wanted = OF_NOVELTY if asked.asks == "novelty" else OF_SERENDIPITY
        elif self._survey.metrics:
            metrics, wanted = self.settings.metrics, self._survey.metrics
        names = dict.fromkeys([*wanted, *HELD_METRICS])
        found = measure_users(self._shared, metrics, some, tuple(names), self._create, lists)
        named = wanted is self._survey.metrics
        return tracked(found if named else chosen(found), answers, self._survey, wanted)

    def _count(self, table: ir.Table) -> int:
        return int(table.count().to_pyarrow().as_py())

    def _notes(self, slices: bool) -> list[str]:
        notes = [note for name in _READ if name in self._source.logs for note in self._unread(name)]
        if copies := sum(one.is_duplicate for one in self._source.logs[SURVEY].skipped):
            extra = plural(copies, "file")
            notes.append(f"the rows of {extra} of logs.survey are those of another file, and count once")
        if not self._survey.questions:
            notes.append("the config names no questions; all are read as questions on satisfaction")
        for column in self._survey.by:
            if column not in self._kept_columns:
                notes.append(f"survey.by: logs.survey has no column {quoted(column)}")
        if slices:
            notes += [f"slices.by: {one}" for one in self._lacking(self.settings.slices.by)]
        return notes

    def _unread(self, name: str) -> list[str]:
        """The files of a log that were not read, without those written before the first list."""
        log = self._source.logs[name]
        notes = [
            f"logs.{name}: {one.file.path} was not read: {one.reason}"
            for one in log.skipped
            if not one.is_duplicate and (one.file.modified >= self.shown.start or not log.has_windows)
        ]
        notes += [f"logs.{name}: {one}" for one in log.unlisted]
        more = len(notes) - _MOST_UNREAD
        if more > 0:
            notes[_MOST_UNREAD:] = [f"logs.{name}: {plural(more, 'further file')} could not be read"]
        return notes
