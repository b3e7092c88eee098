"""Recorded, simulated and swept episodes beside each other."""
