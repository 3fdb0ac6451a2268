"""Generates docs/cli.md from the commands: `python -m monitor.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from monitor.cli.app import app

_HEAD = """\
# Command line

This page is generated from the commands; `make docs` writes it again. Every command has `--help`.

Results go to standard output. Errors go to standard error, with their place and what to do. Long
work shows a progress bar on a terminal, and nothing when standard error is piped. Times without an offset are
UTC.
`RECSYS_MONITOR_TRACEBACK=1` shows the traceback of an error as well.

| exit code | meaning, for `check` |
|---|---|
| 0 | all is well |
| 1 | something is violated |
| 2 | a wrong config or usage; every mistake of a config is printed with its place |
| 3 | something could not be judged (no data, late, or an error), or the config judges nothing |
"""


def reference() -> str:
    """The whole page."""
    return _HEAD + "".join(_command(path, one) for path, one in commands())


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its full name, including those of groups."""
    yield from _within("recsys-monitor", typer.main.get_command(app))


def _within(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from _within(f"{path} {name}", inner)
        else:
            yield f"{path} {name}", inner


def _command(path: str, command: Any) -> str:
    usage = " ".join([path, *(_usage(one) for one in command.params)])
    lines = [f"\n## {path.removeprefix('recsys-monitor ')}\n", f"    {usage}\n"]
    lines += [" ".join(part.split()) + "\n" for part in (command.help or "").split("\n\n")]
    if command.params:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| {_names(one)} | {_meaning(one)} |" for one in command.params]
        lines.append("")
    for part in (command.epilog or "").split("\n\n"):
        example = part.removeprefix("Example: ")
        lines.append(f"    {example}\n" if example != part else f"{part}\n")
    return "\n".join(lines)


def _is_argument(one: Any) -> bool:
    return bool(one.param_type_name == "argument")


def _usage(one: Any) -> str:
    if _is_argument(one):
        return str(one.metavar if one.required else f"[{one.metavar}]")
    flag = one.secondary_opts[0] if one.secondary_opts and one.default is True else one.opts[0]
    shown = flag + (f" {_value(one)}" if _value(one) else "")
    return shown if one.required else f"[{shown}]"


def _value(one: Any) -> str:
    """The value of an option: its choices or its metavar; nothing for a flag."""
    if getattr(one, "is_flag", False):
        return ""
    choices = getattr(getattr(one, "type", None), "choices", None) or getattr(one, "choices", None)
    if choices is None and hasattr(one.default, "__class__") and hasattr(type(one.default), "__members__"):
        choices = [str(member) for member in type(one.default)]
    return "|".join(map(str, choices)) if choices else str(one.metavar or "VALUE")


def _names(one: Any) -> str:
    if _is_argument(one):
        return f"`{one.metavar}`"
    names = ", ".join(f"`{name}`" for name in sorted([*one.opts, *one.secondary_opts], key=len, reverse=True))
    return f"{names} `{_value(one)}`".replace("|", "\\|") if _value(one) else names


def _meaning(one: Any) -> str:
    text = str(one.help or "")
    if one.required or getattr(one, "is_flag", False) or one.default is None or callable(one.default):
        return text
    return f"{text} Default: `{one.default}`."


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 (this is what the program is for)
