"""The health check of the container: exit code 0 if the daemon at RECSYS_HEALTH_URL is alive, else 1.

    python -m monitor.service.probe

/healthz needs no password. A daemon that asks for a client certificate (`server.web_config`) is alive too.
The server's certificate is not verified, because it names another host than loopback.
"""

from __future__ import annotations

import os
import ssl
import sys
import urllib.error
import urllib.request

_SECONDS = 4


def is_alive(url: str) -> bool:
    """Whether the daemon answers without an error, or asks for a client certificate."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    # Without a proxy of the environment: behind one, loopback is another machine.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)
    )
    try:
        with opener.open(url, timeout=_SECONDS):
            return True
    except urllib.error.HTTPError:
        return False
    except (ssl.SSLError, ConnectionResetError):
        # In TLS 1.3 the server refuses a missing client certificate only after the handshake.
        return url.startswith("https://")
    except urllib.error.URLError as exc:
        return isinstance(exc.reason, ssl.SSLError)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(not is_alive(os.environ["RECSYS_HEALTH_URL"]))
