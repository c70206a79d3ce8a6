"""The workflow `cycle`."""
