"""How results look: tables, pages, figures."""
