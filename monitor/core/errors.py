"""Failures that can be expected, such as a wrong config or a history that cannot be reached."""

from __future__ import annotations

from typing import ClassVar


class ExpectedError(Exception):
    """Its message is a sentence for the person who runs the command; `hint` says what to look at next."""

    hint: ClassVar[str] = ""

    @property
    def advice(self) -> str:
        """The message, and the hint on a line of its own."""
        return f"{self}\n{self.hint}" if self.hint else str(self)
