"""What users say in surveys, joined with what they were shown."""
