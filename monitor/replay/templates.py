"""The templates of a target: from the values of a request to its URL, headers and body.

They run in Jinja's sandbox. A value never changes the structure around it: in the URL it is escaped, in a
header it may have no control character, and in a body it is a JSON value.
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote, urlsplit

from jinja2 import StrictUndefined, TemplateError, Undefined, meta, nodes
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from monitor.core.text import MESSAGE_LENGTH, one_line, visible
from monitor.settings.replay import TargetSettings

NOW: Final = "now"
NOW_EPOCH: Final = "now_epoch"
TIMES: Final = (NOW, NOW_EPOCH)
"""The variables with the time of the request, that tell the endpoint not to look into the future."""
_OF_A_URL: Final = string.punctuation
"""What stays as it is, beside letters and digits."""
_JSON: Final = "application/json"
_ENCODE: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode

Values = Mapping[str, Any]


class RenderError(Exception):
    """A request cannot be written; the message is half a sentence."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A request as it is sent, without the secret headers."""

    url: str
    headers: Mapping[str, str]
    body: bytes | None


class TemplateProblems(Exception):
    """Templates are wrong.

    Attributes:
        problems: the place of each in the settings of the target, such as `body.user.id`, and what is wrong.
    """

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{place}: {message}" for place, message in problems))
        self.problems = tuple(problems)


class Templates:
    """The compiled templates of a target.

    Attributes:
        variables: the names that they use.
        passes_now: whether the endpoint is given the time of the request.

    Raises:
        TemplateProblems: some are wrong.
    """

    def __init__(self, target: TargetSettings) -> None:
        self.variables: set[str] = set()
        self._problems: list[tuple[str, str]] = []
        self._url = self._text("url", target.url, _in_url)
        self._headers = {
            name: self._text(f"headers.{name}", value, _in_header) for name, value in target.headers.items()
        }
        self._body = self._of_body(target.body)
        self._has_body = target.body is not None
        self._typed = any(name.lower() == "content-type" for name in self._headers)
        if self._problems:
            raise TemplateProblems(self._problems)

    @property
    def passes_now(self) -> bool:
        return not self.variables.isdisjoint(TIMES)

    def render(self, values: Values) -> Rendered:
        """The request of these values.

        Raises:
            RenderError: a value is missing, or does not fit at its place.
        """
        try:
            headers = {name: _header(name, write(values)) for name, write in self._headers.items()}
            if self._has_body and not self._typed:
                headers["Content-Type"] = _JSON
            return Rendered(
                _checked_url(self._url(values)), headers, self._body(values) if self._has_body else None
            )
        except RenderError:
            raise
        except RecursionError:
            raise RenderError("the body is nested too deep") from None
        except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as exc:
            raise RenderError(visible(one_line(str(exc)), MESSAGE_LENGTH)) from None

    def _text(self, place: str, source: str, write: Callable[[Any], str]) -> Callable[[Values], str]:
        if "{" not in source:
            return lambda _: source
        environment = _environment(write)
        if self._parsed(environment, place, source) is None:
            return lambda _: ""
        template = environment.from_string(source)
        return lambda values: str(template.render(values))

    def _of_body(self, body: Any) -> Callable[[Values], bytes]:
        if isinstance(body, str):
            text = self._text("body", body, _in_json)
            return lambda values: _checked_json(text(values))
        value = self._value("body", body)
        return lambda values: _dump(value(values)).encode()

    def _value(self, place: str, part: Any) -> Callable[[Values], Any]:
        """The writer of a part of a structured body."""
        if isinstance(part, Mapping):
            fields = {name: self._value(f"{place}.{name}", one) for name, one in part.items()}
            return lambda values: {name: write(values) for name, write in fields.items()}
        if isinstance(part, Sequence) and not isinstance(part, str):
            entries = [self._value(f"{place}[{number}]", one) for number, one in enumerate(part)]
            return lambda values: [write(values) for write in entries]
        if not isinstance(part, str) or "{" not in part:
            return lambda _: part
        environment = _environment(_in_text)
        parsed = self._parsed(environment, place, part)
        if parsed is None:
            return lambda _: None
        if not _is_one_expression(parsed):
            template = environment.from_string(part)
            return lambda values: str(template.render(values))
        inner = f"({_expression(environment, part)})"  # a tuple needs the brackets
        expression = environment.compile_expression(inner, undefined_to_none=False)
        return lambda values: _defined(expression(values))

    def _parsed(self, environment: SandboxedEnvironment, place: str, source: str) -> nodes.Template | None:
        """The parts of a template; None if it is wrong, which is noted."""
        try:
            parsed = environment.parse(source)
            self.variables |= meta.find_undeclared_variables(parsed)
            environment.compile(parsed)  # unknown filters and tests
        except TemplateError as exc:
            why = visible(one_line(exc.message or "")).rstrip(".")
            self._problems.append((place, f"is not a template: {why}"))
            return None
        return environment.parse(source)


def _environment(write: Callable[[Any], str]) -> SandboxedEnvironment:
    """A sandbox without anything that gives another result each time, or comes from outside."""
    environment = SandboxedEnvironment(undefined=StrictUndefined, finalize=write, autoescape=False)
    environment.globals.clear()
    environment.filters.pop("random")
    return environment


def _is_one_expression(parsed: nodes.Template) -> bool:
    if len(parsed.body) != 1 or not isinstance(parsed.body[0], nodes.Output):
        return False
    parts = parsed.body[0].nodes
    return len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData)


def _expression(environment: SandboxedEnvironment, source: str) -> str:
    """What is between the braces of a template that is one expression, maybe with comments around it."""
    tokens = [(kind, value) for _, kind, value in environment.lex(source)]
    kinds = [kind for kind, _ in tokens]
    inside = slice(kinds.index("variable_begin") + 1, kinds.index("variable_end"))
    return "".join(value for _, value in tokens[inside])


def _defined(value: Any) -> Any:
    if isinstance(value, Undefined):
        str(value)  # raises with the name
    return value


def _plain(value: Any, where: str) -> str:
    """A single value as text."""
    if isinstance(value, Undefined):
        return str(value)
    if value is None:
        raise RenderError(f"a value in {where} is null; write a default, as {{{{ scene or 'none' }}}}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise RenderError(f"a value in {where} is a list or a record, not a single value")


def _in_url(value: Any) -> str:
    return quote(_plain(value, "the url"), safe="")


def _checked_url(url: str) -> str:
    if not {".", ".."}.isdisjoint(urlsplit(url).path.split("/")):
        raise RenderError("a value makes the url go up to another path")
    return quote(url, safe=_OF_A_URL)  # a blank or an umlaut of the template; the values are escaped already


def _in_header(value: Any) -> str:
    return _plain(value, "a header")


def _in_text(value: Any) -> str:
    return _plain(value, "a text of the body")


def _in_json(value: Any) -> str:
    if isinstance(value, Markup):  # the filter tojson has already written it
        return str(value)
    return _dump(_defined(value))


def _header(name: str, value: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise RenderError(f"the header {name} has a control character")
    return value


def _dump(value: Any) -> str:
    try:
        return _ENCODE(value)
    except TypeError:
        raise RenderError("a value of the body has no form in JSON") from None
    except ValueError:
        raise RenderError("a value of the body is infinite or not a number") from None


def _checked_json(text: str) -> bytes:
    try:
        json.loads(text)
    except ValueError as exc:
        raise RenderError(
            f"the body is not JSON ({exc}); write {{{{ user_id }}}} without quotes, it has its own"
        ) from None
    return text.encode()


def plain_value(value: Any) -> Any:
    """A value of a log as JSON holds it: a time as text, NaN as null, a decimal number as a number."""
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain_value(one) for name, one in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
