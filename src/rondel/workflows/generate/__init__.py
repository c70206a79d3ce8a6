"""The workflow `generate`."""
