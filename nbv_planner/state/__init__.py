"""What a node knows, kept in a file that survives the node."""
