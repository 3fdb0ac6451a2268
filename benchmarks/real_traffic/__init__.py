"""The second scoreboard: which losses the bands catch, and their false alarms, on real traffic."""
