"""FILES: atomic writes, documents, journal, lease. Nothing else lasts."""
