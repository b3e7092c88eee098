"""Many episodes: sweeps, statistics, the optimum, theory."""
