"""Running episodes from outside: the live window and page, and the environment of an agent that learns."""
