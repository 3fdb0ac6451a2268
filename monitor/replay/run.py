"""The folder of a run: what was asked for, the plan, the journal and the log. One process writes it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from monitor.core.errors import ExpectedError
from monitor.core.text import VALUE_LENGTH, quoted

_INFO: Final = "run.json"
_SUMMARY: Final = "summary.json"
_LOCK: Final = "lock"


class RunError(ExpectedError):
    """The run cannot go on."""

    hint: ClassVar[str] = "docs/replay.md says how a run is resumed."


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run was asked for. A run is resumed only with the same."""

    recommender: str
    target: str
    digest: str
    source: str
    users: str
    seed: int
    first: str
    last: str
    cases: str = ""  # a digest


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known of a run once its plan is made.

    Attributes:
        run: its name.
        asked: what it was asked for.
        version: of the target.
        now_passed: whether the endpoint is given the time of each request.
        requests: how many are in the plan.
        users: how many users these have.
        log_requests, log_users: how many the log has.
        unwritten: requests that the templates cannot write; they are not in the plan.
        reasons: why, of the first of them.
        first, last: the times of the requests.
        strata: the requests of the log and of the sample, by scene and quarter of the day.
        without_user: the requests of the sample without a user.
    """

    run: str
    asked: Asked
    version: str | None
    now_passed: bool
    requests: int
    users: int
    log_requests: int
    log_users: int
    unwritten: int
    reasons: tuple[str, ...]
    first: str
    last: str
    strata: tuple[Mapping[str, Any], ...]
    without_user: int = 0

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The stored one; None if the run has no plan yet."""
        try:
            content = json.loads((folder / _INFO).read_text("utf-8"))
            asked = Asked(**content.pop("asked"))
            return cls(asked=asked, **{name: _frozen(value) for name, value in content.items()})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise RunError(
                f"{folder / _INFO} is not the description of a run; choose another --run"
            ) from None

    def store(self, folder: Path) -> None:
        _write(folder / _INFO, asdict(self))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def check_same(info: RunInfo, asked: Asked) -> None:
    """Refuse to go on with a run that was asked for other things: its log would mix two questions."""
    names = {"digest": "the settings of the target have", "source": "the source of the requests has"}
    names |= {"first": "--from has", "last": "--to has", "cases": "the cases have"}
    before, now = asdict(info.asked), asdict(asked)
    for name, value in now.items():
        if value != before[name]:
            what = names.get(name, f"--{name} has" if name in ("users", "seed") else f"the {name} has")
            shown = (
                ""
                if name in ("digest", "cases")
                else (f" (then {quoted(before[name], VALUE_LENGTH)}, now {quoted(value, VALUE_LENGTH)})")
            )
            raise RunError(
                f"the run {quoted(info.run)} exists, and {what} changed{shown}; "
                "write the same to go on with it, or choose another --run"
            )


def check_plan(info: RunInfo, plan: Path) -> None:
    """Refuse to go on with a run whose plan is lost or damaged: nobody knows which requests are left."""
    try:
        requests = pq.read_metadata(plan).num_rows
    except (OSError, pa.ArrowException):
        requests = None
    if requests != info.requests:
        raise RunError(f"{plan} is missing or damaged, so the run cannot go on; choose another --run")


def store_summary(folder: Path, content: Mapping[str, Any]) -> None:
    _write(folder / _SUMMARY, content)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(content, indent=1, allow_nan=False), "utf-8")
    unfinished.replace(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder of a run; it is created if needed. A crash or a SIGKILL also releases it.

    Raises:
        RunError: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield
        finally:
            _drop_if_empty(folder)
    except BlockingIOError:
        raise RunError(f"another process is replaying the run in {folder}; wait for it, or stop it") from None
    finally:
        os.close(handle)


def _drop_if_empty(folder: Path) -> None:
    """What ended before it had a plan leaves no folder."""
    if [one.name for one in folder.iterdir()] == [_LOCK]:
        (folder / _LOCK).unlink()
        folder.rmdir()
