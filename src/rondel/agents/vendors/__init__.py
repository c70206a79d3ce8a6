"""The vendors' CLIs: an adapter for each, and what all of them share."""
