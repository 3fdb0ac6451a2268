"""Asks the daemon at RECSYS_HEALTH_URL whether it is alive, as its container does: exit code 0 or 1.

    python -m monitor.service.probe

Whoever wants a password or a client certificate first (`server.web_config`) is alive; and the certificate
itself is made out to another name than loopback, so it is not verified.
"""

from __future__ import annotations

import os
import ssl
import sys
import urllib.error
import urllib.request

_SECONDS = 4
_UNAUTHORIZED = 401


def is_alive(url: str) -> bool:
    """Whether there is an answer, and it is not that something is wrong."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS, context=unverified):  # noqa: S310 (ours)
            return True
    except urllib.error.HTTPError as exc:
        return exc.code == _UNAUTHORIZED
    except (ssl.SSLError, ConnectionResetError):
        # In TLS 1.3 a missing client certificate is told, or hung up on, only after the handshake.
        return url.startswith("https://")
    except urllib.error.URLError as exc:
        return isinstance(exc.reason, ssl.SSLError)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(not is_alive(os.environ["RECSYS_HEALTH_URL"]))
