"""`python -m monitor` is `recsys-monitor`."""

from monitor.cli import main

main()
