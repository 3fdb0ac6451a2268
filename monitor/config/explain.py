"""Turns pydantic's errors into problems: a clean place, one sentence and a hint each.

A message repeats a value only if it cannot be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Secret, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from monitor.config.problems import KeyPath, Problem, nearest, show_place
from monitor.core.text import VALUE_LENGTH, cut

_SECRET_WORDS = re.compile(r"pass|secret|token|credential|auth|key|url", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)\S*@|[^/@\s]+@")  # a password may hold a /
_OUTER = re.compile(r"^(Value error|Assertion failed), ")

_KINDS: Mapping[str, str] = {
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "string_type": "must be text",
    "path_type": "must be a path",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "byte_size": "must be a size, as 10GB",
    "byte_size_unit": "must be a size, as 10GB",
    "datetime_type": "must be a time, as 2026-11-20T22:00:00Z",
    "datetime_parsing": "must be a time, as 2026-11-20T22:00:00Z",
    "datetime_from_date_parsing": "must be a time, as 2026-11-20T22:00:00Z",
    "timezone_aware": "must be a time with its zone, as 2026-11-20T22:00:00Z",
}
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_NO_VALUE = "has no value; give one, or leave the key out"
_BLANK = "a key needs a blank after its colon, as in key: value"
_NESTED = ("model_type", "model_attributes_type", "dict_type", "tuple_type", "list_type")


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place in the config with its type; `branch` names the member of a union that complains."""

    place: KeyPath
    owner: type[BaseModel] | None  # the model that the last key belongs to
    annotation: Any
    branch: str = ""
    outer: KeyPath = ()  # the place of the union


def explain(
    error: ValidationError,
    root: type[BaseModel],
    *,
    hide: Callable[[str, str], str],
    is_filled: Callable[[KeyPath], bool],
) -> list[Problem]:
    """Every mistake of form in a config.

    Args:
        error: what `root.model_validate` raised.
        root: the model of the whole config.
        hide: removes values from elsewhere from the message about a place.
        is_filled: whether the value at a place came from elsewhere and must not be shown.
    """
    problems = []
    for spot, complaint in _merged([(_walk(root, one["loc"]), one) for one in _errors(error)]):
        filled = is_filled(spot.place)
        message = complaint if isinstance(complaint, str) else _message(root, spot, complaint, filled)
        place = show_place(spot.place)
        problems.append(Problem(place, hide(message, place)))
    return list(dict.fromkeys(problems))


def places_of(error: ValidationError, root: type[BaseModel]) -> list[tuple[KeyPath, bool]]:
    """The place of every mistake of form, and whether it is an unknown key."""
    return [(_walk(root, one["loc"]).place, one["type"] == "extra_forbidden") for one in _errors(error)]


def _errors(error: ValidationError) -> list[ErrorDetails]:
    """pydantic's errors, without lists that it calls too short because it counts valid entries only."""
    return [
        one
        for one in error.errors(include_url=False)
        if one["type"] != "too_short" or len(one["input"]) < one["ctx"]["min_length"]
    ]


def _merged(found: Sequence[tuple[_Spot, ErrorDetails]]) -> Iterable[tuple[_Spot, ErrorDetails | str]]:
    """The errors, those of a union merged: the deepest ones, or one sentence for all of its members."""
    merged: set[KeyPath] = set()
    for spot, one in found:
        if not spot.branch:
            yield spot, one
            continue
        same = [(other, item) for other, item in found if other.branch and other.outer == spot.outer]
        if any(len(other.place) > len(spot.outer) for other, _ in same):
            if len(spot.place) > len(spot.outer):
                yield spot, one
        elif spot.outer not in merged:
            merged.add(spot.outer)
            if one["input"] is None:
                yield spot, _NO_VALUE
                continue
            kinds = [_KINDS.get(item["type"], item["msg"]).removeprefix("must be ") for _, item in same]
            got = _got(spot, one, hidden=True)
            if not got and "text" in kinds and not isinstance(one["input"], str):
                got = "; put it in quotes"
            yield spot, f"must be {' or '.join(dict.fromkeys(kinds))}{got}"


def _message(root: type[BaseModel], spot: _Spot, error: ErrorDetails, filled: bool) -> str:
    context = error.get("ctx") or {}
    hint = ""
    hidden = filled or _is_secret(spot)
    match error["type"]:
        case "extra_forbidden":
            return "unknown key" + _meant(root, spot)
        case "missing":
            return "is required" + _purpose(spot)
        case _ if error["input"] is None:
            return _NO_VALUE
        case "string_pattern_mismatch":
            return _wrong_form(spot, error["input"], str(context["pattern"]), hidden)
        case "literal_error":
            text = f"must be {context['expected']}"
            close = nearest(str(error["input"]), re.findall(r"'([^']*)'", str(context["expected"])))
            hint = f"; did you mean {close}?" if close is not None else ""
        case kind if kind in _BOUNDS:
            words, key = _BOUNDS[kind]
            text = f"must be {words} {_plain(context[key])}"
        case "too_short" | "too_long":
            return _length(spot, context)
        case "string_too_long":
            has = "" if hidden else f", it has {len(error['input'])}"
            return f"must have at most {context['max_length']} characters{has}"
        case "string_too_short":
            return "must not be empty"
        case "value_error" | "assertion_error":
            text = _OUTER.sub("", error["msg"])
            return _without_user(text[:1].lower() + text[1:], error["input"])
        case kind:
            text = _KINDS.get(kind) or error["msg"].replace("Input should", "must")
    return text + _got(spot, error, hidden) + hint


def _wrong_form(spot: _Spot, value: str, pattern: str, hidden: bool) -> str:
    wanted = _purpose(spot).removeprefix(": ") or f"text that matches {pattern}"
    if hidden:
        return f"has a wrong form; write {wanted}"
    name = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")
    hint = f"; did you mean {name}?" if name != value and re.search(pattern, name) else ""
    return f"{cut(_without_user(repr(value), value), VALUE_LENGTH)} has a wrong form; write {wanted}{hint}"


def _plain(bound: float) -> str:
    """A bound as a config says it: 10000000, not 1e+07."""
    return f"{bound:.0f}" if bound == round(bound) else f"{bound:g}"


def _length(spot: _Spot, context: Mapping[str, Any]) -> str:
    least, most = context.get("min_length"), context.get("max_length")
    if least is not None:
        entries = "1 entry" if least == 1 else f"{least} entries"
        return f"must have at least {entries}, it has {context.get('actual_length')}"
    is_fixed = any(get_origin(one) is tuple and ... not in get_args(one) for one in members(spot.annotation))
    return f"must have {'' if is_fixed else 'at most '}{most} entries; it has more"


def _got(spot: _Spot, error: ErrorDetails, hidden: bool) -> str:
    value = error["input"]
    if isinstance(value, Mapping):
        return ", not a mapping"
    if isinstance(value, list | tuple):
        return ", not a list" + (f"; {_form(spot, error)}" if error["type"] in _NESTED else "")
    if error["type"] in _NESTED:
        return f", not {_a_kind(value)}; {_form(spot, error)}"
    if hidden or _is_secret(spot):
        return ""
    if isinstance(value, bool) and error["type"] == "string_type":
        return f", not {str(value).lower()} (YAML reads yes, no, on and off like this too); put it in quotes"
    shown = _without_user(repr(value), value) if isinstance(value, str) else str(value)
    advice = "; put it in quotes" if error["type"] == "string_type" else ""
    return f", not {cut(shown, VALUE_LENGTH)}{advice}"


def _form(spot: _Spot, error: ErrorDetails) -> str:
    """How to write a list or a mapping."""
    if error["type"] in ("tuple_type", "list_type"):
        return "write it as [one, two]"
    if isinstance(error["input"], str) and re.match(r"\w+:(?!//)\S", error["input"]):
        return _BLANK
    model, many = model_within(spot.annotation)
    fields = {} if model is None or many else _fields(model)
    keys = [name for name, one in fields.items() if one.is_required()] or list(fields)[:1]
    return f"write it as {{{', '.join(f'{name}: ...' for name in keys or ['key'])}}}"


def _without_user(message: str, value: Any) -> str:
    """The message without `user:password@` in the value that it quotes."""
    if not isinstance(value, str) or "@" not in value:
        return message
    return message.replace(value, _USER_INFO.sub("***@", value))


def _a_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "a number" if isinstance(value, int | float) else "this"


def _purpose(spot: _Spot) -> str:
    """The description of the key, from the model."""
    field = _fields(spot.owner).get(str(spot.place[-1])) if spot.owner and spot.place else None
    text = field.description if field is not None else None
    return f": {text}" if text else ""


def _meant(root: type[BaseModel], spot: _Spot) -> str:
    word = str(spot.place[-1])
    if re.match(r"\w+:\S", word):
        return f"; {_BLANK}"
    known = list(_fields(spot.owner)) if spot.owner is not None else []
    close = nearest(word, known)
    if close is not None and not close.endswith(word):  # `port` is no mistyped `export`
        return f"; did you mean {close}?"
    elsewhere = [place for place in _homes(root, word, "") if place]
    if elsewhere:
        return f"; it belongs in {' or '.join(elsewhere[:3])}"
    return f"; known are {', '.join(known)}" if known else ""


def _homes(model: type[BaseModel], word: str, place: str) -> Iterable[str]:
    """The places of the config that know this key."""
    if word in _fields(model):
        yield place
    for name, field in _fields(model).items():
        inner, many = model_within(field.annotation)
        if inner is not None:
            yield from _homes(inner, word, f"{place}.{name}".lstrip(".") + ("[]" if many else ""))


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their keys in a config."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _walk(root: type[BaseModel], location: Sequence[str | int]) -> _Spot:
    """Follow pydantic's location through the types; a part that is no step in them names a union's member."""
    place: list[str | int] = []
    annotation: Any = root
    owner: type[BaseModel] | None = None
    branch = ""
    outer: KeyPath = ()
    for part in location:
        kind, many = model_within(annotation)
        if isinstance(part, int):
            place.append(part)
            annotation = _entry_of(annotation)
        elif kind is not None and not many:
            place.append(part)
            owner = kind
            field = _fields(kind).get(part)
            annotation = field.annotation if field is not None else Any
        elif part != "[key]" and not branch and len(members(annotation)) > 1:
            branch, outer = part, tuple(place)
        elif _is_mapping(annotation) and part != "[key]":
            place.append(part)
            owner, annotation = None, _entry_of(annotation)
    return _Spot(tuple(place), owner, annotation, branch, outer)


def members(annotation: Any) -> list[Any]:
    """The types that an annotation allows, except None."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [inner for one in get_args(annotation) for inner in members(one)]
    return [] if annotation is NoneType else [annotation]


def model_within(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The model in an annotation, and whether the annotation is a list of it."""
    for one in members(annotation):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one, False
        if get_origin(one) is tuple and get_args(one):
            inner, _ = model_within(get_args(one)[0])
            if inner is not None:
                return inner, True
    return None, False


def _entry_of(annotation: Any) -> Any:
    for one in members(annotation):
        if get_origin(one) is tuple:
            return get_args(one)[0]
        if get_origin(one) is dict:
            return get_args(one)[1]
    return Any


def _is_mapping(annotation: Any) -> bool:
    return any(one is dict or get_origin(one) is dict for one in members(annotation))


def _is_secret(spot: _Spot) -> bool:
    """Whether the value may be a secret: by its type, or by the name of any key on the way."""
    if any(one is SecretStr or get_origin(one) is Secret for one in members(spot.annotation)):
        return True
    return any(isinstance(part, str) and _SECRET_WORDS.search(part) for part in spot.place)
