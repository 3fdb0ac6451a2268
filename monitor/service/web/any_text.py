"""A part of a route that takes any text: a name may be empty, or contain slashes and line breaks.

Importing this module makes `{name:text}` known to Starlette.
"""

from __future__ import annotations

from typing import Final

from starlette.convertors import StringConvertor, register_url_convertor

ANY_TEXT: Final = "text"


class _AnyText(StringConvertor):
    regex = r"[\s\S]*"


register_url_convertor(ANY_TEXT, _AnyText())
