"""The bench: frozen splits of objects, protocols, and the table that judges planners on them."""
