"""The settings of one entry of `rules:` in the config."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from monitor.core.settings import Name, Settings


class RuleSettings(Settings):
    """One suite of rules: a pack that comes with the monitor, or a team's own file.

    >>> RuleSettings(pack="blacklist", parameters={"blacklist": "lists/blacklist.csv"}).pack
    'blacklist'
    """

    pack: Annotated[Name | None, Field(description="a pack that comes with the monitor (rules/business)")] = (
        None
    )
    suite: Annotated[
        str | None, Field(min_length=1, description="a suite file, relative to the config file's folder")
    ] = None
    parameters: Annotated[
        dict[str, Any], Field(description="values for the suite's {$PARAMETER: name} places")
    ] = Field(default_factory=dict)
    disable: Annotated[tuple[str, ...], Field(description="rules of the suite that are left out")] = ()

    @model_validator(mode="after")
    def _one_of_both(self) -> RuleSettings:
        if (self.pack is None) == (self.suite is None):
            raise ValueError("give either pack (one that comes with the monitor) or suite (a file)")
        return self
