"""`python -m monitor` is `recsys-monitor`."""

from monitor.cli.app import main

main()
