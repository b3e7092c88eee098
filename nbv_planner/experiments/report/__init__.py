"""From the episodes of a sweep to tables and a page."""
