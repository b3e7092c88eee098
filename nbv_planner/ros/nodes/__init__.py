"""The nodes, one per file, and the parts of the mapper's."""
