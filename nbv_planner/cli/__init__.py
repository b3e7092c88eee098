"""The command line `nbv-planner`: one file per verb, and the only place that prints."""
