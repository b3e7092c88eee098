"""A live view as a page for any browser: the standard library's server, and plain JavaScript without libraries."""
