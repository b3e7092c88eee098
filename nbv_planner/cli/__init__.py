"""The command line `nbv-planner`: one file per subcommand, and the only place that prints."""
