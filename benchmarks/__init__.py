"""What the monitor costs, measured on this machine: `make bench`."""
