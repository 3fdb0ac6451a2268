"""The plan of a run: its requests, made once and kept in the folder of the run, so that a resumed run sends
the same ones.

The plan holds the values of the templates, never a rendered request: a secret in a template stays out of it.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from monitor.core.columns import REQUEST_ID, TS, USER_ID
from monitor.core.digest import digest
from monitor.core.json_value import iso
from monitor.replay.templates import NOW, NOW_EPOCH, Rendered, RenderError, Templates, plain_value
from monitor.settings.replay import Case, TargetSettings

NUMBER: Final = "number"
VALUES: Final = "values"
_PLAN: Final = "plan.parquet"
_BATCH: Final = 4096
_EXAMPLES: Final = 3
_TIME: Final = pa.timestamp("us")


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the plan."""

    number: int
    user: Any
    values: Mapping[str, Any]


@dataclass(slots=True)
class Written:
    """What became of the requests of a log.

    Attributes:
        requests: how many are in the plan.
        unwritten: how many cannot be rendered, and are left out.
        reasons: of the first of these.
        first, last: the times of the requests in the plan.
    """

    requests: int = 0
    unwritten: int = 0
    reasons: list[str] = field(default_factory=list)
    first: datetime | None = None
    last: datetime | None = None


def plan_path(run: Path) -> Path:
    return run / _PLAN


def write_plan(
    path: Path,
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    keep: Sequence[str],
    templates: Templates,
) -> Written:
    """Write the plan of these requests. It appears as a whole or not at all.

    Args:
        path: the file.
        batches: request_id, user_id, ts and the further columns, in the order of sending.
        schema: of the batches.
        keep: the further columns that the log of the answers keeps.
        templates: each request is rendered once, to find those that cannot be.
    """
    fields = [schema.field(REQUEST_ID), schema.field(USER_ID), pa.field(TS, _TIME)]
    fields += [schema.field(name) for name in keep]
    whole = pa.schema([pa.field(NUMBER, pa.int64()), *fields, pa.field(VALUES, pa.string())])
    found = Written()
    unfinished = path.with_suffix(".unfinished")
    with pq.ParquetWriter(unfinished, whole, compression="zstd") as writer:
        for batch in batches:
            rows = list(_rows(batch, templates, found))
            if rows:
                columns = [[row[one.name] for row in rows] for one in whole]
                arrays = [pa.array(column, one.type) for column, one in zip(columns, whole, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=whole))
    _sync(unfinished)
    unfinished.replace(path)
    return found


def trial(
    batches: Iterator[pa.RecordBatch], templates: Templates, most: int
) -> tuple[list[Rendered], Written]:
    """The first requests as they would be sent, and what would become of all."""
    found, first = Written(), list[Rendered]()
    for batch in batches:
        for row in _rows(batch, templates, found):
            if len(first) < most:
                first.append(templates.render(json.loads(row[VALUES])))
    return first, found


def _rows(batch: pa.RecordBatch, templates: Templates, found: Written) -> Iterator[dict[str, Any]]:
    """The rows of the plan, numbered; requests that cannot be rendered are counted."""
    for row in batch.to_pylist():
        values = _values(row, templates.variables)
        try:
            templates.render(values)
        except RenderError as exc:
            found.unwritten += 1
            if len(found.reasons) < _EXAMPLES and str(exc) not in found.reasons:
                found.reasons.append(str(exc))
            continue
        at = row[TS].replace(tzinfo=UTC)
        found.first = at if found.first is None else min(found.first, at)
        found.last = at if found.last is None else max(found.last, at)
        yield row | {NUMBER: found.requests, VALUES: json.dumps(values, ensure_ascii=True)}
        found.requests += 1


def _values(row: Mapping[str, Any], variables: set[str]) -> dict[str, Any]:
    """The values of the templates' variables; a variable that the row lacks is left out."""
    at = row[TS].replace(tzinfo=UTC)
    values = {name: plain_value(row[name]) for name in variables if name in row and name != TS}
    times = {NOW: iso(at), NOW_EPOCH: at.timestamp(), TS: iso(at)}
    return values | {name: value for name, value in times.items() if name in variables}


def read_plan(path: Path, *, without: Container[int] = ()) -> Iterator[Request]:
    """The requests of a plan in their order, without some numbers."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH, columns=[NUMBER, USER_ID, VALUES]):
            columns = (batch.column(name).to_pylist() for name in (NUMBER, USER_ID, VALUES))
            for number, user, values in zip(*columns, strict=True):
                if number not in without:
                    yield Request(number, user, json.loads(values))


def count_cases(cases: Mapping[str, Sequence[Case]]) -> int:
    """How many requests the cases make.

    >>> count_cases({"user_id": ["a", "b"], "scene": ["home", "feed", "cart"]})
    6
    """
    return math.prod(len(values) for values in cases.values())


def requests_of_cases(cases: Mapping[str, Sequence[Case]], now: datetime) -> pa.Table:
    """Every combination of the values as one request at a time.

    >>> made = requests_of_cases({"scene": ["home", "feed"]}, datetime(2026, 1, 1, tzinfo=UTC))
    >>> made["request_id"].to_pylist(), made["scene"].to_pylist(), made["user_id"].to_pylist()
    (['case-1', 'case-2'], ['home', 'feed'], [None, None])
    """
    rows = list(itertools.product(*cases.values()))
    columns = {name: _array([row[place] for row in rows]) for place, name in enumerate(cases)}
    numbers = pa.array([f"case-{number}" for number in range(1, len(rows) + 1)])
    at = pa.array([now.astimezone(UTC).replace(tzinfo=None)] * len(rows), _TIME)
    users = columns.pop(USER_ID, pa.nulls(len(rows), pa.string()))
    return pa.table({REQUEST_ID: numbers, USER_ID: users, TS: at, **columns})


def _array(values: list[Case]) -> pa.Array:
    """A column of the values: whole numbers and fractions are numbers, other mixed values are text."""
    kinds = {type(one) for one in values if one is not None}
    if kinds == {int, float}:
        return pa.array([None if one is None else float(one) for one in values])
    if len(kinds) <= 1:
        return pa.array(values)
    texts = [json.dumps(one) if isinstance(one, bool) else one for one in values]
    return pa.array([None if one is None else str(one) for one in texts])


def digest_of(target: TargetSettings) -> str:
    """Changes when the target would be asked for other things, or its answers would be read otherwise."""
    asked = (
        target.name, target.url, target.method, sorted(target.headers.items()),
        json.dumps(target.body, sort_keys=True, default=str), target.version,
        sorted(target.response.model_dump().items()),
    )  # fmt: skip
    return digest(repr(asked), 16)


def digest_of_cases(cases: Mapping[str, Sequence[Case]]) -> str:
    """Changes when the cases would make other requests.

    >>> digest_of_cases({"scene": ["home"]}) == digest_of_cases({"scene": ["feed"]})
    False
    """
    return digest(json.dumps(list(cases.items())), 16)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
