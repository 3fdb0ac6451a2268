"""The scoreboard: which incidents the monitor catches, how soon, and how often it wakes anybody in vain."""
