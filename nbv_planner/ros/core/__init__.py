"""What every node is built from."""
