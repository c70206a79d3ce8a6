"""The workflow `review`."""

from rondel.workflows.review.merge import merge_findings as merge_findings
