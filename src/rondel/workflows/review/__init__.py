"""The workflow `review`."""
