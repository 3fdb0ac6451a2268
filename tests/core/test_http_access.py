"""What a system of others says, as a sentence for people."""

from __future__ import annotations

from monitor.core.http_access import sentence
from monitor.core.redaction import keep_secret


def test_a_sentence_is_one_harmless_line_without_secrets():
    keep_secret("hunter2-hunter2", "${PASSWORD}")
    text = sentence("login of hunter2-hunter2\nfailed \x1b[31m" + "x" * 900)
    assert "hunter2" not in text
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) < 400
