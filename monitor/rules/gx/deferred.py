"""Loading a large module when it is first used, and not when somebody imports it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """Stands for a module until one of its attributes is asked for.

    Not importlib's LazyLoader: Python 3.11 asks what it makes for `__spec__` at every import, which loads it.
    """

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = import_module(self.__name__)
        vars(self).update(vars(real))
        return getattr(real, name)


def defer(name: str) -> None:
    """Make `import name` cheap: the module is loaded at the first look at one of its attributes.

    A module that is loaded already stays as it is.

    >>> defer("json.tool")
    >>> import json.tool
    >>> json.tool.main.__name__
    'main'
    """
    if name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {name}")
    module = _Deferred(name)
    module.__spec__ = spec
    sys.modules[name] = module
    package, _, own = name.rpartition(".")
    if package:
        setattr(import_module(package), own, module)


def hide(module: str, *names: str) -> None:
    """While `module` is loaded, importing one of `names` fails in it, as where that is not installed.

    For a module that takes whatever optional package it finds. What is loaded already stays as it is, be it
    the module or a package.

    >>> hide("great_expectations.compatibility.aws", "boto3")
    """
    if module not in sys.modules:
        sys.meta_path.insert(0, _Finder(module, names))


class _Finder(MetaPathFinder):
    """Finds one module, once, as the others would, and hides names from it."""

    def __init__(self, module: str, names: Sequence[str]) -> None:
        self._module = module
        self._names = names

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._names)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Loader, names: Sequence[str]) -> None:
        self._loader = loader
        self._names = names

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _hidden(self._names):
            self._loader.exec_module(module)


@contextmanager
def _hidden(names: Sequence[str]) -> Iterator[None]:
    found = [name for name in names if name not in sys.modules]
    modules: dict[str, Any] = sys.modules  # None is what makes an import fail
    modules |= dict.fromkeys(found)
    try:
        yield
    finally:
        for name in found:
            del modules[name]
