"""YAML that can come from anywhere: plain values only, no key twice, no bombs, errors with their line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from monitor.core.text import quoted

MAX_BYTES = 1 << 20
MAX_VALUES = 100_000
MAX_DEPTH = 100
_STANDARD = "tag:yaml.org,2002:"
_KINDS = {
    _STANDARD + "int": "number",
    _STANDARD + "float": "number",
    _STANDARD + "timestamp": "date",
    _STANDARD + "bool": "truth value",
}
_TOO_LARGE = f"is larger than {MAX_BYTES >> 20} MiB, which is too large"
_INDENTED = (
    "the indentation does not fit the lines above: the keys of one mapping begin in one column, and so do "
    "the items of one list"
)
_OTHER_BRACKET = "this bracket does not close the { or [ that is open"
_ADVICE = (
    ("while scanning an alias", "", 'a text that begins with * or [ needs quotes, as in "*.csv"'),
    ("while scanning an anchor", "", "a text that begins with & needs quotes"),
    ("while scanning a block scalar", "", "a text that begins with | or > needs quotes"),
    ("while scanning a quoted scalar", "", "a quote begins here and is never closed"),
    (
        "while scanning a double-quoted scalar",
        "",
        "a \\ in double quotes begins an escape; use single quotes",
    ),
    (
        "while scanning a simple key",
        "",
        "this is no key with a value: a key needs a colon and a blank after it",
    ),
    ("while parsing a flow", "but got ']'", _OTHER_BRACKET),
    ("while parsing a flow", "but got '}'", _OTHER_BRACKET),
    (
        "while parsing a flow",
        "but got '<scalar>'",
        "a comma is missing here, or the whole value needs quotes",
    ),
    (
        "while parsing a flow",
        "but got '{'",
        'a text with { needs quotes within {...} and [...], as in "${X}"',
    ),
    (
        "while parsing a flow",
        "expected ',' or",
        "the { or [ here is never closed, or a text in it needs quotes",
    ),
    ("while parsing a flow", "", "a { or [ holds what it cannot hold; put texts with : , [ ] { } in quotes"),
    (
        "",
        "but found '<scalar>'",
        "text follows a quote or a bracket that is closed; put the whole value in quotes",
    ),
    ("", "but found ']'", "this ] closes nothing"),
    ("", "but found '}'", "this } closes nothing"),
    ("", "expected <block end>", _INDENTED),
    ("", "found undefined alias", "an alias without an anchor; a text that begins with * needs quotes"),
    ("", "found character '\\t'", "a tab; write spaces instead of tabs"),
    ("", "but found another document", "a second document begins here; remove the ---"),
    (
        "",
        "mapping values are not allowed here",
        "a colon where none is expected; check the indentation, write a blank after the colon in the line "
        "above, or put the value in quotes",
    ),
)
"""What PyYAML says: its context begins like the first text, its problem holds the second; and our advice."""
_FROM_THE_BEGINNING = (
    "while scanning an alias",
    "while scanning an anchor",
    "while scanning a quoted scalar",
    "while scanning a simple key",
)


class YamlProblem(ValueError):
    """A text that is not usable YAML: `place` is the line, and the column where it is known, or empty."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place
        self.message = message


def read_yaml(path: Path) -> Any:
    """The value of a YAML file, as `parse_yaml` gives it; a file without any is None.

    Raises:
        YamlProblem: the file cannot be read, is not UTF-8 text, or holds no usable YAML.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as exc:
        raise YamlProblem("", f"cannot be read: {getattr(exc, 'strerror', None) or exc}") from None
    if len(content) > MAX_BYTES:
        raise YamlProblem("", _TOO_LARGE)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = content[: exc.start].count(b"\n") + 1
        what = f"is not UTF-8 text (the byte 0x{content[exc.start]:02x})"
        raise YamlProblem(f"line {line}", what) from None
    return parse_yaml(text)


def parse_yaml(text: str) -> Any:
    """The value of a YAML document: mappings, lists, texts, numbers, truth values, dates, nulls.

    Anchors, aliases and merge keys work, but a document that they make grow beyond a hundred thousand
    values is refused, and so is one that holds itself.

    >>> parse_yaml("a: &x {b: 1}\\nc: *x")
    {'a': {'b': 1}, 'c': {'b': 1}}

    Raises:
        YamlProblem: with the place of the first mistake.
    """
    if len(text) > MAX_BYTES:
        raise YamlProblem("", _TOO_LARGE)
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _Structure().check(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as exc:
        mark = _mark(exc)
        raise YamlProblem(_place(mark) if mark else "", _sentence(exc)) from None
    except yaml.reader.ReaderError as exc:
        line, column = _line_of(text, exc.position)
        place = f"line {line}, column {column}"
        raise YamlProblem(place, f"holds the control character U+{_code(exc):04X}") from None
    except RecursionError:
        raise YamlProblem("", "is nested too deeply") from None


class _Loader(yaml.SafeLoader):
    """The safe loader, with a place for each value that it cannot make."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        # No such day, a number of five thousand digits, or a text that does not fit a tag such as !!bool.
        except (ValueError, OverflowError, LookupError, AttributeError):
            kind = _KINDS.get(node.tag, "value of its tag")
            raise _error(
                f"looks like a {kind} but is not one; if it is text, put it in quotes", node
            ) from None


class _Structure:
    """Walks a document before anything is made of it: its size without aliases, and its keys.

    Before, since merge keys change the nodes while values are made.
    """

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._open: set[int] = set()

    def check(self, node: yaml.Node, depth: int = 1) -> int:
        """How many values the node stands for; raises where it may not be used."""
        if id(node) in self._known:
            return self._known[id(node)]
        if id(node) in self._open:
            raise _error("an alias lies inside the value that it stands for", node)
        if depth > MAX_DEPTH:
            raise _error("is nested too deeply", node)
        self._open.add(id(node))
        children: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            children = [one for pair in node.value for one in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        size = 1 + sum(self.check(one, depth + 1) for one in children)
        if size > MAX_VALUES:
            raise _error(f"holds more than {MAX_VALUES:,} values after its aliases are expanded", node)
        self._open.discard(id(node))
        self._known[id(node)] = size
        return size


def _check_keys(node: yaml.MappingNode) -> None:
    """Plain YAML would silently take the last of two equal keys."""
    seen: dict[tuple[str, str], yaml.ScalarNode] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _error("a key must be a word, not a list or a mapping", key)
        first = seen.setdefault((key.tag, key.value), key)
        if first is not key:
            where = f"line {first.start_mark.line + 1}"
            raise _error(f"the key {quoted(key.value)} is given twice, first in {where}; keep one", key)


def _error(message: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, message, node.start_mark)


def _sentence(exc: yaml.MarkedYAMLError) -> str:
    problem, context = (exc.problem or "is not YAML").strip(), (exc.context or "").strip()
    if "could not determine a constructor for the tag" in problem:
        # Neither a tag nor an alias is shown: it may be a password that starts with ! or *.
        return "tags are not allowed; a text that starts with ! needs quotes"
    for before, within, advice in _ADVICE:
        if context.startswith(before) and within in problem:
            return f"is not YAML: {advice}"
    if (start := re.fullmatch(r"found character '(.)' that cannot start any token", problem)) is not None:
        return f"is not YAML: a text that begins with {start[1]} needs quotes"
    if isinstance(exc, yaml.constructor.ConstructorError):
        return problem
    return f"is not YAML: {problem}" + (f" ({context})" if context else "")


def _mark(exc: yaml.MarkedYAMLError) -> yaml.Mark | None:
    """Where the mistake is: what is never closed is reported where it begins, not at the end of the file."""
    context, problem = exc.context or "", exc.problem or ""
    is_open = "expected ',' or" in problem and re.search(r"but got '([]{}]|<scalar>)'", problem) is None
    if exc.context_mark and (is_open or context in _FROM_THE_BEGINNING):
        return exc.context_mark
    return exc.problem_mark or exc.context_mark


def _place(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _line_of(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _code(exc: yaml.reader.ReaderError) -> int:
    return exc.character if isinstance(exc.character, int) else ord(str(exc.character)[:1] or "\0")
