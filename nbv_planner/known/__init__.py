"""What is known of the object before the first scan."""
