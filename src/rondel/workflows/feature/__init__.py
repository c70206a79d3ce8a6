"""The workflow `feature`."""
