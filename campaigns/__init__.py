"""Campaigns of faults and of hostile messages against the real nodes; not installed."""
