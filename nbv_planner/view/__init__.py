"""Running episodes from outside: the live log with its window and page, and the environment of an agent that learns."""
