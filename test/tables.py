"""What tests read from a table."""

from __future__ import annotations

from nbv_planner.report.tables import Cell, Table


def column(table: Table, name: str) -> list[Cell]:
    """Values of the column called `name` in CSV."""
    return [record[name] for record in table.records()]
