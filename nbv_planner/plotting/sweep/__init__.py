"""Pictures of a whole sweep: planners beside each other over all objects."""
