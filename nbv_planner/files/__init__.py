"""Files written by hand: how they are read."""
