"""Many episodes: the comparison with the thesis's published table."""
