"""From the bytes of an answer to its items, scores and positions, or why it is not an answer."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from monitor.core.columns import OK
from monitor.core.text import NAME_LENGTH, one_line, quoted, visible
from monitor.replay.json_path import JsonPath, PathError
from monitor.settings.replay import ResponseSettings, TargetSettings

GARBAGE: Final = "garbage"
TOO_LARGE: Final = "too_large"
WRONG_USER: Final = "wrong_user"
_LONGEST_ID: Final = 1_000
_LARGEST_POSITION: Final = 2**31


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint answered. `detail` says why the status is not `ok`."""

    status: str
    items: Sequence[str] = ()
    scores: Sequence[float | None] | None = None
    positions: Sequence[int] | None = None
    model: str | None = None
    detail: str = ""


class _NoAnswer(Exception):
    def __init__(self, detail: str, status: str = GARBAGE) -> None:
        super().__init__(detail)
        self.status = status


def path_problem(text: str) -> str | None:
    """Why a text is not a JSON path; None if it is one."""
    try:
        JsonPath(text)
    except Exception as exc:  # the library raises plain exceptions and those of its parser
        return f"{quoted(text)} is not a JSON path such as $.items[*].id: {visible(one_line(str(exc)))}"
    return None


class AnswerReader:
    """Reads the answers of one target."""

    def __init__(self, target: TargetSettings) -> None:
        mapping: ResponseSettings = target.response
        self._most = target.max_items
        self._items = JsonPath(mapping.items)
        self._scores = _path(mapping.scores)
        self._positions = _path(mapping.positions)
        self._user = _path(mapping.user)
        self._model = _path(mapping.model)

    def read(self, body: bytes, user: object) -> Answer:
        """The answer in a body, for a request of this user."""
        try:
            return self._read(body, user)
        except _NoAnswer as exc:
            return Answer(exc.status, detail=str(exc))
        except PathError:
            return Answer(GARBAGE, detail="the path cannot be applied to the answer")
        except RecursionError:
            return Answer(GARBAGE, detail="the JSON is nested too deep")

    def _read(self, body: bytes, user: object) -> Answer:
        if not body:
            raise _NoAnswer("the body is empty")
        try:
            content = json.loads(body, parse_constant=_no_constant)
        except ValueError:  # bytes that are not UTF-8 too
            raise _NoAnswer("the body is not JSON") from None
        if self._user is not None:
            self._check_user(_single(self._user, content, "user"), user)
        found = _items(self._items, content)
        if found is None:
            raise _NoAnswer("nothing is at the path of the items")
        if len(found) > self._most:
            raise _NoAnswer(f"{len(found):,} items", TOO_LARGE)
        items = [_id(one) for one in found]
        model = None if self._model is None else _single(self._model, content, "model")
        return Answer(
            OK,
            items,
            self._beside(self._scores, content, "scores", _score, len(items)),
            self._beside(self._positions, content, "positions", _position, len(items)),
            None if model is None else visible(model, 200),
        )

    @staticmethod
    def _beside(path: JsonPath | None, content: Any, name: str, read: Any, count: int) -> list[Any] | None:
        if path is None:
            return None
        found = _values(path, content)
        if len(found) != count:
            raise _NoAnswer(f"{len(found):,} {name} for {count:,} items")
        return [read(one) for one in found]

    @staticmethod
    def _check_user(answered: Any, asked: object) -> None:
        if answered is None and asked is None:
            return
        if answered is None or asked is None or str(answered) != str(asked):
            raise _NoAnswer("the answer is for another user", WRONG_USER)


def _path(text: str | None) -> JsonPath | None:
    return None if text is None else JsonPath(text)


def _values(path: JsonPath, content: Any) -> list[Any]:
    """What a path finds: the entries if it finds one list."""
    found = path.find(content)
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _items(path: JsonPath, content: Any) -> list[Any] | None:
    """The ids at a path; None if the answer has no such list.

    `$.items[*].id` finds nothing in an empty list, which is an answer, and nothing without `items`, which is
    none. It also leaves out an item without `id`, which must not be lost in silence.
    """
    found, held = path.find_held(content)
    if not found:
        return [] if path.leads_to_empty_list(content) else None
    if len(found) == 1 and isinstance(found[0], list):
        return found[0]
    if len(found) < held:
        raise _NoAnswer(f"{held - len(found):,} of {held:,} items have no id")
    return found


def _single(path: JsonPath, content: Any, name: str) -> Any:
    found = path.find(content)
    if len(found) != 1 or isinstance(found[0], list | dict):
        raise _NoAnswer(f"the path of the {name} finds no single value")
    return found[0]


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _NoAnswer(f"an item's id is {_shown(value)}")
    text = str(value)
    if len(text) > _LONGEST_ID:
        raise _NoAnswer(f"an item's id has {len(text):,} characters")
    if "\0" in text or not _encodable(text):
        raise _NoAnswer("an item's id has a character that no file can hold")
    return text


def _score(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _NoAnswer(f"a score is {_shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _NoAnswer("a score is beyond the range of float64")
    return number


def _position(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST_POSITION:
        raise _NoAnswer(f"a position is {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    kinds = {type(None): "null", bool: "true or false", dict: "an object", list: "a list"}
    return kinds.get(type(value)) or quoted(value, NAME_LENGTH)


def _encodable(text: str) -> bool:
    return text.isascii() or not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
