"""Files of rosbag2: MCAP and SQLite, whole or damaged, read from begin to end in bounded memory."""
