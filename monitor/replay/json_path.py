"""JSON paths, with a short way for the common ones.

The library walks any path, and takes 20 us for ten items. Paths of fields and `[*]` alone, such as
`$.items[*].id`, are walked here in 1 us where the answer has the shape that they expect. Everything else is
left to the library.
"""

from __future__ import annotations

from typing import Any, Final

from jsonpath_ng.ext.filter import Filter
from jsonpath_ng.ext.parser import parse
from jsonpath_ng.jsonpath import Child, Fields, Index, JSONPath, Root, Slice, Wildcard

_EACH: Final = object()
Found = tuple[list[Any], int]


class PathError(Exception):
    """A path cannot be applied to this content, such as a sort by a field that is null in some entries."""


class JsonPath:
    """A path. Raises an exception of the library if the text is none.

    All methods raise PathError if the path cannot be applied to the content.
    """

    def __init__(self, text: str) -> None:
        self.path = parse(text)
        self._steps = _steps(self.path)

    def find(self, content: Any) -> list[Any]:
        """The values at the path.

        >>> JsonPath("$.items[*].id").find({"items": [{"id": "a"}, {"id": "b"}]})
        ['a', 'b']
        """
        return self.find_held(content)[0]

    def find_held(self, content: Any) -> Found:
        """The values, and how many values the last step was made from.

        >>> JsonPath("$.items[*].id").find_held({"items": [{"id": "a"}, {"sku": "b"}]})
        (['a'], 2)
        """
        found = None if self._steps is None else _walk(self._steps, content)
        if found is not None:
            return found
        values = _found(self.path, content)
        holders = _found(self.path.left, content) if isinstance(self.path, Child) else ()
        return values, len(holders)

    def leads_to_empty_list(self, content: Any) -> bool:
        """Whether the path finds nothing because it goes through the entries of an empty list.

        A filter or a slice that leaves no entry of a list makes an empty one.

        >>> path = JsonPath("$.items[*].id")
        >>> path.leads_to_empty_list({"items": []}), path.leads_to_empty_list({})
        (True, False)
        >>> JsonPath("$.items[?(@.ok == true)].id").leads_to_empty_list({"items": [{"id": "a", "ok": False}]})
        True
        """
        path = self.path
        while isinstance(path, Child):
            entries, chosen = (
                not isinstance(path.right, Fields | Index),
                isinstance(path.right, Filter | Slice),
            )
            path = path.left
            found = _found(path, content)
            if found:
                return entries and all(one == [] or (chosen and isinstance(one, list)) for one in found)
        return False


def _found(path: JSONPath, content: Any) -> list[Any]:
    """The values that the library finds. It raises plain exceptions, depending on the content."""
    try:
        return [one.value for one in path.find(content)]
    except (RecursionError, MemoryError):
        raise
    except Exception as exc:
        raise PathError(str(exc)) from exc


def _steps(path: JSONPath) -> list[Any] | None:
    """The fields of a simple path, with `_EACH` for the entries of a list; None for any other path."""
    if isinstance(path, Root):
        return []
    if not isinstance(path, Child):
        return None
    before, last = _steps(path.left), path.right
    if before is None:
        return None
    if isinstance(last, Fields) and len(last.fields) == 1 and last.fields[0] != "*":
        return [*before, last.fields[0]]
    return [*before, _EACH] if isinstance(last, Wildcard) else None


def _walk(steps: list[Any], content: Any) -> Found | None:
    """The values of a simple path and those before its last step; None if the content has another shape."""
    values, held = [content], 0
    for step in steps:
        held = len(values)
        if step is _EACH:
            if not all(isinstance(one, list) for one in values):
                return None
            values = [entry for one in values for entry in one]
        else:
            if not all(isinstance(one, dict) for one in values):
                return None
            values = [one[step] for one in values if step in one]
    return values, held
