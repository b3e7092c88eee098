"""Pictures of recorded episodes, alone and beside each other."""
