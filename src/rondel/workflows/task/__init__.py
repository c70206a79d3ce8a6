"""The workflow `task`."""
