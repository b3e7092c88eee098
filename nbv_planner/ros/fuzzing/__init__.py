"""Malformed and hostile messages, sent to the nodes' own callbacks."""
