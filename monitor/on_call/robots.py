"""The robots of chat groups: what each is posted, how it is signed, and how it says that it refused.

They answer a refusal with status 200 and a code in the body. So a plain webhook would count it as delivered.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote_plus, urlsplit
from urllib.request import Request

from monitor.core.http_access import HIDDEN, AccessError, read_secret, sentence
from monitor.core.redaction import keep_secret
from monitor.on_call.asking import answer_of
from monitor.on_call.message import Message, as_text, shortened
from monitor.settings.on_call import RelayTarget

TIMEOUT: Final = 10.0
_MOST_TEXT: Final = {"feishu": 18_000, "dingtalk": 18_000, "wecom": 2_048}  # bytes, below the limit of each


def deliver(target: RelayTarget, message: Message, *, now: float | None = None) -> None:
    """Post the message to the robot. Raises AccessError, without any secret, unless the robot took it."""
    at = time.time() if now is None else now
    url = _address(target)
    secret = None if target.secret_file is None else read_secret(target.secret_file)
    body = content_of(target.to, message)
    if secret is not None and target.to == "feishu":
        body |= {"timestamp": str(int(at)), "sign": feishu_sign(secret, int(at))}
    if secret is not None and target.to == "dingtalk":
        moment = int(at * 1000)
        joined = "&" if urlsplit(url).query else "?"
        url += f"{joined}timestamp={moment}&sign={quote_plus(dingtalk_sign(secret, moment))}"
    _check(target, _post(target, url, body))


def content_of(to: str, message: Message) -> dict[str, Any]:
    """What a robot is posted. Feishu gets text and links apart; the others plain text, which holds no markup.

    >>> content_of("wecom", Message("T", (), 1))
    {'msgtype': 'text', 'text': {'content': 'T'}}
    """
    most = _MOST_TEXT[to]
    if to != "feishu":
        return {"msgtype": "text", "text": {"content": as_text(message, most)}}
    return _post_of_feishu(shortened(message, most, lambda part: len(_json(_post_of_feishu(part)))))


def _post_of_feishu(message: Message) -> dict[str, Any]:
    rows: list[list[dict[str, str]]] = []
    for entry in message.entries:
        rows += [[{"tag": "text", "text": line}] for line in entry.lines]
        links = [{"tag": "a", "text": f"{label} ", "href": address} for label, address in entry.links]
        rows += [links] if links else []
        rows.append([{"tag": "text", "text": ""}])
    post = {"title": message.title, "content": rows}
    return {"msg_type": "post", "content": {"post": {"en_us": post}}}


def _json(body: Mapping[str, Any]) -> bytes:
    """The body as it is posted. In UTF-8 a character takes half as many bytes as escaped, or fewer."""
    return json.dumps(body, ensure_ascii=False).encode()


def feishu_sign(secret: str, seconds: int) -> str:
    """Feishu's signature: HMAC-SHA256 of nothing, with the time and the secret as the key.

    >>> feishu_sign("secret", 1700000000)
    'fiWS2+gh28DOydAv7hzONH/mDn9+b1Y4Y5ivXWXy8vA='
    """
    return _encoded(hmac.new(f"{seconds}\n{secret}".encode(), b"", hashlib.sha256))


def dingtalk_sign(secret: str, milliseconds: int) -> str:
    """DingTalk's signature: HMAC-SHA256 of the time and the secret, with the secret as the key.

    >>> dingtalk_sign("secret", 1700000000000)
    'OuzzJR5+xZ4/EYwqtNt6sMYZQMTa/HEGvc9miJe7XzY='
    """
    return _encoded(hmac.new(secret.encode(), f"{milliseconds}\n{secret}".encode(), hashlib.sha256))


def _encoded(mac: hmac.HMAC) -> str:
    return base64.b64encode(mac.digest()).decode()


def _address(target: RelayTarget) -> str:
    """The webhook address from its file. Neither it nor its parts are shown from now on."""
    url = read_secret(target.url_file)
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web:
        raise AccessError(
            f"the file {sentence(target.url_file)} holds no address that begins with http:// or https://"
        )
    for secret in (
        parts.path.rstrip("/").rsplit("/", 1)[-1],
        *(value for _, value in parse_qsl(parts.query)),
    ):
        keep_secret(secret, HIDDEN)
    return url


def _post(target: RelayTarget, url: str, body: Mapping[str, Any]) -> bytes:
    request = Request(  # noqa: S310 (the address is checked)
        url, data=_json(body), headers={"Content-Type": "application/json; charset=utf-8"}
    )
    code, answer = answer_of(target.to, request, TIMEOUT)
    if code != 200:
        raise AccessError(f"{target.to} answered with code {code}: {_said(answer)}")
    return answer


def _check(target: RelayTarget, answer: bytes) -> None:
    """Raise AccessError unless the answer says that the robot took the message."""
    try:
        content = json.loads(answer)
        code = content["code"] if "code" in content else content.get("StatusCode", content.get("errcode"))
    except (ValueError, TypeError, AttributeError, RecursionError):
        code = None
    if code != 0:
        raise AccessError(f"{target.to} refused the message: {_said(answer)}")


def _said(answer: bytes) -> str:
    return sentence(answer.decode("utf-8", "replace")) or "nothing"
