"""Pictures of episodes; the only place that imports matplotlib."""
