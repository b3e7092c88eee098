"""Pictures of sweeps, and of what objectives count."""
