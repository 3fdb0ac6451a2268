"""Loading a large module when it is first used, and not when somebody imports it."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec


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
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"there is no module {name}")
    loader = LazyLoader(spec.loader)
    spec.loader = loader
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    package, _, own = name.rpartition(".")
    if package:
        setattr(import_module(package), own, module)
