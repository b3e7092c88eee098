"""Tables and self-contained pages, whatever they are about."""
