"""Short keys for long content. Many are stored, so the content and the length of each must stay the same."""

from __future__ import annotations

import hashlib


def digest(content: str | bytes, length: int) -> str:
    """The first hexadecimal characters of the content's SHA-256.

    >>> digest("abc", 8)
    'ba7816bf'
    """
    if not 1 <= length <= 64:
        raise ValueError(f"a digest has 1 to 64 characters, not {length}")
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()[:length]
