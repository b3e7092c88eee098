"""The three nodes, one per file."""
