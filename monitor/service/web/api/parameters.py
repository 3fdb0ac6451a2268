"""The query parameters as models, and the reading of a query string into one.

The description of a field says what the parameter takes. It stands in the OpenAPI document, and in the
refusal of a wrong value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from monitor.core.json_value import iso
from monitor.core.results import ResultKind, Status
from monitor.core.text import VALUE_LENGTH, encodable, quoted
from monitor.report.known_changes import ChangeKind
from monitor.service.web.api.answers import ViolationState
from monitor.service.web.api.refusal import Refusal, wrong_parameter

MOST_ROWS: Final = 1000
DEFAULT_ROWS: Final = 100
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def parse_time(value: object) -> datetime:
    """A time in ISO 8601. A time without a zone is UTC.

    >>> parse_time("2026-03-01T10:00:00+02:00").isoformat(), parse_time("2026-03-01").isoformat()
    ('2026-03-01T08:00:00+00:00', '2026-03-01T00:00:00+00:00')
    """
    text = str(value)
    if len(text) > 5 and text[-6] == " ":  # a `+` that was not written as %2B
        text = f"{text[:-6]}+{text[-5:]}"
    moment = datetime.fromisoformat(text)
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:  # in UTC it lies before the year 1 or after 9999
        raise ValueError("must lie between 1970 and 2199") from None
    if not _FIRST <= moment < _LAST:
        raise ValueError("must lie between 1970 and 2199")
    return moment


Time = Annotated[
    datetime, BeforeValidator(parse_time), WithJsonSchema({"type": "string", "format": "date-time"})
]
ISO_TIME: Final = (
    "a time in ISO 8601 from 1970 to 2199, such as 2026-03-01, 2026-03-01T10:00 or 2026-03-01T10:00:00Z; "
    "without a zone it is UTC"
)


class Query(BaseModel):
    """The parameters of an address; by itself it has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Paging(Query):
    """Which page of the rows."""

    limit: int = Field(
        DEFAULT_ROWS, ge=1, le=MOST_ROWS, description=f"a whole number from 1 to {MOST_ROWS}: rows of a page"
    )
    cursor: str | None = Field(
        None, description="the `next_cursor` of the page before, with the same filters"
    )


class Labelled(Query):
    """Which series of a metric."""

    label: tuple[str, ...] = Field(
        (), description="name=value: a label that the series has; give it several times for several labels"
    )
    check: str | None = Field(None, description="the name of a check: rules, exposure, bands")

    def wanted_labels(self) -> list[tuple[str, str]]:
        """The labels that are asked for.

        >>> Labelled(label=("k=10", "value=a=b")).wanted_labels()
        [('k', '10'), ('value', 'a=b')]
        """
        wanted = []
        for one in self.label:
            name, equals, value = one.partition("=")
            if not equals:
                expected = "name=value, such as by=pv"
                detail = f"label {quoted(one, VALUE_LENGTH)} has no `=`; expected is {expected}."
                raise wrong_parameter("label", detail, expected)
            wanted.append((name, value))
        return wanted


class Sliced(Labelled):
    """Which series of a metric, with or without those of slices."""

    sliced: bool | None = Field(
        None, description="true or false: only series of a slice, or only those of all rows"
    )

    def has_labels(self, labels: Mapping[str, str]) -> bool:
        """Whether labels hold all that are asked for."""
        if self.sliced is not None and self.sliced is not ("dimension" in labels):
            return False
        known = {encodable(name): encodable(value) for name, value in labels.items()}
        return all(known.get(name) == value for name, value in self.wanted_labels())


class Named(Sliced):
    """Which series or results."""

    metric: str | None = Field(None, description="the name of a metric, or `rule`")
    kind: ResultKind | None = Field(None, description=f"one of {', '.join(ResultKind)}")

    def takes(self, check: str, kind: ResultKind, metric: str, labels: Mapping[str, str]) -> bool:
        """Whether a series is asked for."""
        return (
            self.metric in (None, encodable(metric))
            and self.check in (None, check)
            and self.kind in (None, kind)
            and self.has_labels(labels)
        )


class TimeRange(Query):
    """Which windows, by the times that they lie between."""

    begin: Time | None = Field(
        None, alias="from", description=f"{ISO_TIME}: only windows that start at it or later"
    )
    end: Time | None = Field(
        None, alias="to", description=f"{ISO_TIME}: only windows that end at it or before; it is after `from`"
    )

    @field_validator("end")
    @classmethod
    def _after_the_begin(cls, end: datetime | None, info: ValidationInfo) -> datetime | None:
        begin = info.data.get("begin")
        if begin is not None and end is not None and end <= begin:
            detail = f"to is {iso(end)}, and from is {iso(begin)}; expected is a `to` after `from`."
            raise wrong_parameter("to", detail, cls.model_fields["end"].description or "")
        return end


class RecommendersQuery(Paging):
    status: Status | None = Field(None, description=f"one of {', '.join(Status)}: only with this status")


class SeriesQuery(Paging, Named):
    standing: Status | None = Field(None, description=f"one of {', '.join(Status)}: only with this standing")


class ResultsQuery(Paging, Named):
    status: Status | None = Field(None, description=f"one of {', '.join(Status)}: only with this status")
    window_start: Time | None = Field(
        None, description=f"{ISO_TIME}: only windows that start at it; default: the last window of each check"
    )
    window_end: Time | None = Field(
        None, description=f"{ISO_TIME}: with window_start, only the window that ends at it"
    )


class HistoryQuery(Paging, TimeRange, Sliced):
    pass


class WindowsQuery(Paging, TimeRange):
    pass


class ViolationsQuery(Paging, Named, TimeRange):
    state: ViolationState | None = Field(None, description="one of open, resolved, gone")


class AnomaliesQuery(Paging):
    standing: Status | None = Field(None, description=f"one of {', '.join(Status)}: only with this standing")


class ChangesQuery(Paging, TimeRange):
    kind: ChangeKind | None = Field(None, description=f"one of {', '.join(ChangeKind)}")


class RulesQuery(Paging):
    rule: str | None = Field(None, description="the name of a rule")


class ModelsQuery(Paging):
    model: str | None = Field(None, description="the name of a model; empty: the model without a name")


Q = TypeVar("Q", bound=Query)


def read_query(model: type[Q], given: Iterable[tuple[str, str]]) -> Q:
    """The parameters of a query string. Raises Refusal for a wrong one; it names what is expected."""
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    values: dict[str, Any] = {}
    for name, value in given:
        if name not in known:
            detail = f"There is no parameter {quoted(name, VALUE_LENGTH)} at this address."
            raise Refusal(400, detail, parameter=encodable(name[:VALUE_LENGTH]), exists=sorted(known))
        expected = known[name].description or ""
        if get_origin(known[name].annotation) is tuple:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise wrong_parameter(name, f"{name} is given twice.", expected)
        else:
            values[name] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        expected = known[name].description or ""
        detail = f"{name} is {quoted(values[name], VALUE_LENGTH)}; expected is {expected}."
        raise wrong_parameter(name, detail, expected) from None
