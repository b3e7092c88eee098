"""The live window and page of a running episode."""
