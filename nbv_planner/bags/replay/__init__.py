"""A recorded run as a laboratory: its scans and poses through mapper and planner again."""
