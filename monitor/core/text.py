"""Makes foreign text safe to store and to show: text from a log, a file, a config or an engine's error.

Secrets are removed before a text is cut, because half of a secret would not be recognised. All limits are in
characters.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from monitor.core.redaction import redact

NAME_LENGTH: Final = 40  # of a column, an arm or an event, one of several in a sentence
VALUE_LENGTH: Final = 60  # of a value that a sentence quotes
SETTING_LENGTH: Final = 80  # of what somebody wrote into the config
EVIDENCE_LENGTH: Final = 200  # of a value in a row of evidence
LABEL_LENGTH: Final = 256  # of a label's value in Prometheus
MESSAGE_LENGTH: Final = 300  # of an error's message, and of a text on a page
REASON_LENGTH: Final = 400  # why a file is left out
STORED_LENGTH: Final = 500  # of a value that the history keeps
DETAIL_LENGTH: Final = 2000  # of a result's detail, and of a rule's description

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # controls, formats, surrogates, separators
_CONTROLS = {"\n": "LF", "\r": "CR", "\t": "TAB", "\0": "NUL"}


def cut(text: str, limit: int, mark: str = "...") -> str:
    """The text, or its first characters and the mark.

    >>> cut("abcdef", 3), cut("abc", 3)
    ('abc...', 'abc')
    """
    return text if len(text) <= limit else text[:limit] + mark


def fit(text: str, limit: int, mark: str = "...") -> str:
    """The text, or its first characters and the mark, together no longer than the limit.

    >>> fit("abcdef", 5), fit("abcde", 5)
    ('ab...', 'abcde')
    """
    return text if len(text) <= limit else text[: limit - len(mark)] + mark


def plural(n: float, noun: str) -> str:
    """A whole number with its noun.

    >>> plural(1, "rule"), plural(1200, "rule")
    ('1 rule', '1,200 rules')
    """
    return f"{n:,.0f} {noun}{'' if n == 1 else 's'}"


def quoted(text: Any, limit: int = SETTING_LENGTH, mark: str = "") -> str:
    """A text within a sentence: cut, in quotes, and what cannot be seen is escaped.

    >>> quoted("a\\nb"), quoted("abcdef", 3), quoted("abcdef", 3, "...")
    ("'a\\\\nb'", "'abc'", "'abc...'")
    """
    return repr(cut(str(text), limit, mark))


def one_line(text: str) -> str:
    """The text with its secrets taken out, on one line.

    >>> one_line("cannot\\n  read")
    'cannot read'
    """
    return " ".join(redact(text).split())


def printable(text: str, instead: str = " ") -> str:
    """The text, with something in the place of each character that cannot be printed.

    >>> printable("a\\x1b[31m", "?")
    'a?[31m'
    """
    return "".join(character if character.isprintable() else instead for character in text)


def encodable(text: str) -> str:
    """The text as UTF-8 can hold it: a file's name may hold halves of characters.

    >>> encodable("a\\udce9b")
    'a?b'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def visible(value: Any, limit: int = MESSAGE_LENGTH) -> str:
    """Foreign text as one harmless line: what cannot be seen, or turns text around, is named.

    This is about what a reader sees; escaping for HTML is the template's part.

    >>> visible("a\\nb\\u202ec"), visible(None), visible("x" * 9, limit=4)
    ('a[LF]b[U+202E]c', '', 'xxxx… (9 characters)')
    """
    if value is None:
        return ""
    text = str(value)
    head = text[:limit]
    # Most texts are printable as a whole, and a page has thousands of them.
    shown = head if head.isprintable() else "".join(map(_visible_character, head))
    return shown if len(text) <= limit else f"{shown}… ({len(text):,} characters)"


def visible_evidence(value: Any, limit: int = VALUE_LENGTH) -> str:
    """A value of a row of evidence as such a line. Nobody knows how long a value was that is stored cut.

    >>> visible_evidence("x" * 9, limit=4), visible_evidence(fit("x" * 9999, EVIDENCE_LENGTH), limit=4)
    ('xxxx… (9 characters)', 'xxxx…')
    """
    text = str(value)
    return visible(text, limit) if len(text) < EVIDENCE_LENGTH else f"{visible(text[:limit])}…"


def visible_lines(text: str, limit: int = 40) -> str:
    """Our own message that may quote foreign text: its lines stay lines, and those left out are counted.

    >>> visible_lines("a: wrong\\nb: \\u202e"), visible_lines("a\\nb\\nc", 2)
    ('a: wrong\\nb: [U+202E]', 'a\\nb (and 1 more line)')
    """
    lines = text.splitlines()
    shown = "\n".join(map(visible, lines[:limit]))
    more = len(lines) - limit
    return shown if more <= 0 else f"{shown} (and {plural(more, 'more line')})"


def harmless(text: str) -> str:
    """Our own message, that may quote foreign text, for a terminal or a log: whole, and its lines stay lines.

    >>> harmless("a: wrong\\nb: \\x1b[31m")
    'a: wrong\\nb: [U+001B][31m'
    """
    return "\n".join(visible(line, max(len(line), 1)) for line in text.split("\n"))


def _visible_character(character: str) -> str:
    if unicodedata.category(character) in _UNSEEN:
        return f"[{_CONTROLS.get(character) or f'U+{ord(character):04X}'}]"
    return character
