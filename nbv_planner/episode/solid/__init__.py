"""Episodes in space: a depth camera around a solid."""
