"""Pictures of how a window's rows are distributed, read from the logs when a person asks for them."""
