"""Running episodes from outside: the live log with its page, and the environment of an agent that
learns.
"""
