"""The settings of what reaches the person on call: the Alertmanager of drills, the relay to chats."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from monitor.core.settings import Name, Settings
from monitor.settings.access import HttpServer
from monitor.settings.server import is_loopback, split_listen


def _checked_listen(value: str) -> str:
    split_listen(value)
    return value


class RelayTarget(Settings):
    """A robot of a chat group. Alertmanager posts to its name below the address of the relay."""

    name: Name
    to: Literal["feishu", "dingtalk", "wecom"] = Field(description="feishu is also Lark")
    url_file: str = Field(
        description="a file with the webhook address of the robot, read for each message and never shown"
    )
    secret_file: str | None = Field(
        None, description="a file with the secret that signs each message; WeCom has none"
    )

    @model_validator(mode="after")
    def _only_some_sign(self) -> RelayTarget:
        if self.to == "wecom" and self.secret_file is not None:
            raise ValueError("robots of WeCom do not sign; leave secret_file out")
        return self


class RelaySettings(Settings):
    """`recsys-monitor relay`: posts Alertmanager's messages to chats that Alertmanager cannot talk to."""

    listen: Annotated[str, AfterValidator(_checked_listen)] = Field(
        "127.0.0.1:9110", description="address and port that Alertmanager posts to"
    )
    token_file: str | None = Field(
        None,
        description="a file with the token that Alertmanager must send (`authorization.credentials_file` "
        "there); required for other than loopback addresses",
    )
    targets: tuple[RelayTarget, ...] = Field(min_length=1, max_length=50)

    @model_validator(mode="after")
    def _is_guarded(self) -> RelaySettings:
        names = [one.name for one in self.targets]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"targets: {twice!r} is the name of two targets")
        if self.token_file is None and not is_loopback(split_listen(self.listen)[0]):
            raise ValueError(
                f"listen: anybody who reaches {self.listen} could post to your chats; set token_file"
            )
        return self


class OnCallSettings(Settings):
    """What reaches the person on call, see docs/on-call.md."""

    alertmanager: HttpServer | None = Field(
        None, description="the Alertmanager that `recsys-monitor drill` sends a test page through"
    )
    relay: RelaySettings | None = Field(
        None, description="the chats that `recsys-monitor relay` posts alerts to"
    )
