"""The soak of the daemon: thousands of windows with bad files, kills and failures of the history."""
