"""One episode, wherever it comes from: parameters, messages, log, simulation, judge, records."""
