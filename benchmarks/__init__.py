"""Speed and memory, each against the obvious implementation in the same run; not installed."""
