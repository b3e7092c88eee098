"""What the clouds of the topics hold, read from any message that has their fields."""
