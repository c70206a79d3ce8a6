"""VALUES: what the rooms of the house pass to each other. No file, no clock, no process."""
