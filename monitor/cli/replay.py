"""The work of `replay`: plan the requests, send them, write the log, and measure it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from monitor.cli.export import check_name, who_lacks
from monitor.cli.judge import load, why_empty, why_unread
from monitor.cli.one_off import OneOff, one_off
from monitor.cli.terminal import INTERRUPTED, NOT_JUDGED, OK, VIOLATED, fail, note, progress
from monitor.config.checks.check import Checked
from monitor.config.problems import nearest
from monitor.core import columns as c
from monitor.core.json_value import iso
from monitor.core.text import NAME_LENGTH, plural, quoted
from monitor.logs.log import Log
from monitor.replay.exposure_log import Marks, log_file, shown_path, write_log
from monitor.replay.journal import Journal
from monitor.replay.plan import (
    Written,
    count_cases,
    digest_of,
    digest_of_cases,
    plan_path,
    read_plan,
    requests_of_cases,
    trial,
    write_plan,
)
from monitor.replay.results import measured, time_travel
from monitor.replay.run import Asked, RunInfo, check_plan, check_same, locked, store_summary
from monitor.replay.sample import Sample, requests_of, sampled
from monitor.replay.send import REFUSED, Sent, send
from monitor.replay.templates import TIMES, Templates
from monitor.report.replay import DryRun, ReplayReport, as_content
from monitor.settings.config import Config
from monitor.settings.replay import ReplaySettings, TargetSettings

_RUN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHOWN_IN_DRY_RUN: Final = 3


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command."""

    target: str
    recommender: str | None
    first: datetime | None
    last: datetime | None
    users: str | None
    seed: int
    cases: bool
    output: Path
    run: str | None
    send_interrupted: bool


@dataclass(frozen=True, slots=True)
class _Planned:
    """The requests to send, before they are written into a plan."""

    batches: Iterator[pa.RecordBatch]
    schema: pa.Schema
    keep: tuple[str, ...]
    requests: int
    sample: Sample | None = None


class _Replay:
    """One call of the command."""

    def __init__(self, path: Path, options: Options) -> None:
        if options.cases:
            _of_cases(options)
        self.config, checked = load(path)
        self.options = options
        self.checked, self.target = _chosen(self.config, checked, options)
        settings = self.checked.settings.replay
        assert settings is not None
        self.settings: ReplaySettings = settings
        self.name = self.checked.settings.name
        self.templates = Templates(self.target)
        self.now = datetime.now(UTC)
        self.users = _users(options.users)
        if options.cases and settings.cases is None:
            fail(f"{self.name} has no replay.cases in the config; docs/replay.md says how to write them")
        if options.send_interrupted and not self.target.idempotent:
            fail(
                f"the target {self.target.name} may not get a request twice; if it may, write "
                "`idempotent: true` in its settings"
            )

    @property
    def asked(self) -> Asked:
        options = self.options
        source = "cases" if options.cases else "exposures" if self.settings.requests is None else "requests"
        first, last = ("" if one is None else iso(one) for one in (options.first, options.last))
        return Asked(
            self.name, self.target.name, digest_of(self.target), source, options.users or "all", options.seed,
            first, last, digest_of_cases(self.settings.cases or {}) if options.cases else "",
        )  # fmt: skip

    def dry(self) -> DryRun:
        """What would be sent; nothing is sent or written."""
        with ExitStack() as stack:
            planned = self._planned(stack)
            rendered, written = trial(planned.batches, self.templates, _SHOWN_IN_DRY_RUN)
        if not written.requests:
            fail(_nothing_written(written))
        return DryRun(
            self.target, rendered, written.requests, written.unwritten, tuple(written.reasons),
            self._time_travel(self.now, written.first, written.last),
        )  # fmt: skip

    def run(self) -> tuple[ReplayReport, int]:
        """Send what is not sent yet; the report and the exit code."""
        name = self.options.run or f"{self.target.name}-{self.now:%Y%m%dT%H%M%SZ}"
        if _RUN_NAME.fullmatch(name) is None:
            raise typer.BadParameter(
                f"{quoted(name)} is not a name of letters, digits, . _ and -", param_hint="--run"
            )
        folder = self.options.output / name
        with locked(folder):
            info = RunInfo.load(folder)
            if info is None:
                info = self._make_plan(folder, name)
            else:
                check_same(info, self.asked)
                check_plan(info, plan_path(folder))
            sent = self._send(folder, info)
            marks = Marks(name, self.target.name, info.version, info.now_passed)
            with progress(0, f"{self.target.name}: writing the log"):
                written = write_log(folder, marks)
                found = None if written is None else measured(log_file(folder))
            first, last = map(datetime.fromisoformat, (info.first, info.last))
            note = self._time_travel(self.now, first, last)
            report = ReplayReport(info, folder, sent, found, note)
            store_summary(folder, as_content(report))
        return report, _code(report)

    def _send(self, folder: Path, info: RunInfo) -> Sent:
        with Journal(folder) as journal:
            again = (REFUSED, c.INTERRUPTED) if self.options.send_interrupted else (REFUSED,)
            done = journal.settled(but=again)  # what was refused never arrived
            left = info.requests - len(done)
            if not left:
                return Sent()
            with progress(left, f"{self.target.name}: sending") as step:
                return send(self.target, read_plan(plan_path(folder), without=done), journal, step)

    def _make_plan(self, folder: Path, name: str) -> RunInfo:
        with ExitStack() as stack:
            planned = self._planned(stack)
            with progress(0, f"{self.name}: planning"):
                written = write_plan(
                    plan_path(folder), planned.batches, planned.schema, planned.keep, self.templates
                )
                if not written.requests:
                    plan_path(folder).unlink()
                    fail(_nothing_written(written))
                if planned.sample is not None:
                    _write_shown(self._once, folder)
        assert written.first is not None  # there is a request
        assert written.last is not None
        sample = planned.sample
        info = RunInfo(
            run=name,
            asked=self.asked,
            version=self.target.version,
            now_passed=self.templates.passes_now,
            requests=written.requests,
            users=0 if sample is None else sample.sampled_users - sample.sampled_without_user,
            log_requests=planned.requests if sample is None else sample.requests,
            log_users=0 if sample is None else sample.users - sample.without_user,
            without_user=0 if sample is None else sample.sampled_without_user,
            unwritten=written.unwritten,
            reasons=tuple(written.reasons),
            first=iso(written.first),
            last=iso(written.last),
            strata=() if sample is None else tuple(map(asdict, sample.strata)),
        )
        info.store(folder)
        return info

    def _planned(self, stack: ExitStack) -> _Planned:
        """The requests of the cases or of a log. The log stays open until the stack ends."""
        if self.options.cases:
            return self._cases()
        self._once = stack.enter_context(one_off(self.config, Checked(self.checked.settings), salt=""))
        with progress(0, f"{self.name}: reading the logs") as step:
            sample = self._sample(step)
        if sample.sampled_requests > self.settings.max_requests:
            share = self.settings.max_requests / sample.sampled_requests
            fail(
                f"that is {sample.sampled_requests:,} requests, and replay.max_requests is "
                f"{self.settings.max_requests:,}; choose fewer users, as --users "
                f"{max(1, int(sample.sampled_users * share * 0.9))}"
            )
        batches = sample.table.to_pyarrow_batches(chunk_size=4096)
        keep = tuple(one for one in self.settings.keep if one in sample.table.columns)
        return _Planned(iter(batches), batches.schema, keep, sample.requests, sample)

    def _cases(self) -> _Planned:
        cases = self.settings.cases
        assert cases is not None
        if (count := count_cases(cases)) > self.settings.max_requests:
            fail(
                f"the cases make {count:,} requests, and replay.max_requests is "
                f"{self.settings.max_requests:,}; write fewer values"
            )
        table = requests_of_cases(cases, self.now)
        self._check_variables(table.column_names, "The cases have")
        keep = tuple(name for name in cases if name != c.USER_ID)
        return _Planned(iter(table.to_batches(4096)), table.schema, keep, table.num_rows)

    def _sample(self, step: Any) -> Sample:
        source, engine = self._once.evaluator.source, self._once.runtime.engine
        which = c.EXPOSURES
        if self.settings.requests is not None:
            which = c.REQUESTS
            source.logs[which] = Log(which, self.settings.requests, self.checked.settings)
        elif which not in source.logs:
            fail(f"{self.name} has no exposures; write replay.requests, or use --cases")
        self._once.look(self.now, step)
        log = source.logs[which]
        if log.watermark is None:
            fail(f"{self.name}: {why_empty(log)}", NOT_JUDGED)
        rows = source.rows_of_files(engine, which, log.read_entries, own_ids=True)
        self._say_what_is_left_out(log, rows)
        requests = requests_of(rows, self.options.first, min(self.options.last or self.now, self.now))
        self._check_variables(requests.columns, f"The log of {which} has")
        found = sampled(engine, requests, self.users, self.options.seed)
        if found is None:
            fail(f"{self.name}: the log has no request in this span", NOT_JUDGED)
        return found

    def _say_what_is_left_out(self, log: Log, rows: ir.Table) -> None:
        """Files that cannot be read, and rows that are no request of the past."""
        if why := why_unread(log):
            note(f"{self.name}: {why}")
        now, ahead = ibis.literal(self.now.replace(tzinfo=None)).cast("timestamp(6)"), 0
        if any(one.future for one in log.read_entries):
            ahead = int(rows.filter(rows[c.TS] >= now).count().to_pyarrow().as_py())
        for count, why in (
            (
                sum(one.unplaced for one in log.read_entries),
                "without a request_id or a ts; `validate` shows which",
            ),
            (ahead, "for the time is in the future; correct `timezone` or the clock of the writer"),
        ):
            if count:
                left = f"{plural(count, 'row')} {'is' if count == 1 else 'are'} left out"
                note(f"{self.name}: {log.name}: {left}, {why}")

    def _check_variables(self, columns: Sequence[str], where: str) -> None:
        for name in sorted(self.templates.variables - {*columns, *TIMES}):
            meant = nearest(name, columns)
            hint = f"; did you mean {quoted(meant, NAME_LENGTH)}?" if meant else "."
            there = ", ".join(quoted(one, NAME_LENGTH) for one in columns)
            fail(
                f"a template of {self.target.name} uses {quoted(name, NAME_LENGTH)}, which is no column"
                f"{hint} {where}: {there}, now, now_epoch"
            )

    def _time_travel(self, at: datetime, first: datetime | None, last: datetime | None) -> str:
        if self.options.cases or first is None or last is None:
            return ""
        return time_travel(now_passed=self.templates.passes_now, first=first, last=last, at=at)


def replay(path: Path, options: Options) -> tuple[ReplayReport, int]:
    """The report of a run, which is new or goes on, and the exit code."""
    return _Replay(path, options).run()


def dry_run(path: Path, options: Options) -> DryRun:
    """The first requests as they would be sent."""
    return _Replay(path, options).dry()


def _chosen(config: Config, checked: list[Checked], options: Options) -> tuple[Checked, TargetSettings]:
    """The recommender and the target of this name."""
    if options.recommender is not None:
        check_name(options.recommender, config)
    known: list[tuple[Checked, TargetSettings]] = [
        (one, target)
        for one in checked
        if one.settings.replay is not None and options.recommender in (None, one.settings.name)
        for target in one.settings.replay.targets
    ]
    if not known:
        fail(f"{who_lacks(options.recommender)} replay.targets; docs/replay.md says how to write them")
    named = [one for one in known if one[1].name == options.target]
    if len(named) == 1:
        return named[0]
    if named:
        owners = ", ".join(one.settings.name for one, _ in named)
        raise typer.BadParameter(
            f"several recommenders have the target {quoted(options.target)}: name one of {owners}",
            param_hint="--recommender",
        )
    names = [target.name for _, target in known]
    meant = nearest(options.target, names)
    hint = f"did you mean {meant}?" if meant else f"there are: {', '.join(names)}"
    raise typer.BadParameter(f"no target is called {quoted(options.target)}; {hint}", param_hint="TARGET")


def _of_cases(options: Options) -> None:
    """Raise a usage error for an option that has no effect on cases."""
    chosen = {
        "--from": options.first, "--to": options.last, "--users": options.users, "--seed": options.seed
    }  # fmt: skip
    for name, value in chosen.items():
        if value:
            raise typer.BadParameter(
                f"{name} chooses requests of a log; --cases sends all cases of the config", param_hint=name
            )


def _users(text: str | None) -> int | Fraction | None:
    """How many users, or which share: `500`, `10%`."""
    if text is None:
        return None
    number = text.strip()
    if re.fullmatch(r"[0-9]{1,9}", number) and int(number) >= 1:
        return int(number)
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,6})?%", number) and 0 < (share := Fraction(number[:-1])) <= 100:
        return share / 100
    raise typer.BadParameter(
        f"{quoted(text)} is neither a number as 500 nor a share as 10%", param_hint="--users"
    )


def _write_shown(once: OneOff, folder: Path) -> None:
    """Write which items the source log has ever shown to the users of the plan, if it knows."""
    source, engine = once.evaluator.source, once.runtime.engine
    if c.EXPOSURES not in source.logs or not source.exposures.read_entries:
        return
    users = pq.read_table(plan_path(folder), columns=[c.USER_ID]).group_by(c.USER_ID).aggregate([])
    wanted = engine.create("replay_users", ibis.memtable(users.cast(pa.schema([(c.USER_ID, pa.string())]))))
    rows = source.rows_of_files(engine, c.EXPOSURES, source.exposures.read_entries)
    rows = rows.select(**{name: rows[name].cast("string") for name in (c.USER_ID, c.ITEM_ID)})
    rows = rows.filter(rows[c.USER_ID].notnull(), rows[c.ITEM_ID].notnull())
    batches = rows.semi_join(wanted, c.USER_ID).distinct().to_pyarrow_batches()
    path = shown_path(folder)
    unfinished = path.with_suffix(".unfinished")
    with pq.ParquetWriter(unfinished, batches.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
    unfinished.replace(path)


def _nothing_written(written: Written) -> str:
    reasons = "; ".join(written.reasons)
    return f"the templates can write none of the {written.unwritten:,} requests: {reasons}"


def _code(report: ReplayReport) -> int:
    if report.sent.stopped:
        return INTERRUPTED
    if report.found is None or not report.found.answered:
        return NOT_JUDGED
    if report.sent.aborted:
        return VIOLATED
    statuses = report.found.statuses
    return NOT_JUDGED if statuses.get(REFUSED) or statuses.get(c.INTERRUPTED) else OK
