"""The surface mapper: update, samples, likelihood and memory, against the dense solution and scikit-learn in one run.

    python benchmarks/bench_mapper.py [--quick]

An update adds the last 50 of n measurements and computes the belief. Times are milliseconds of processor time on one
thread, the median of several rounds in which the solvers take turns. What to compare is the ratio; the milliseconds are
orientation.
"""

from __future__ import annotations

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: processor times of several threads would add up

import numpy as np

from nbv_planner.benchmarking.mapper import mapper_rows


def text(value: object) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    rows = mapper_rows(parser.parse_args().quick)
    print(f"numpy {np.__version__}")
    table = [list(rows[0]), *([text(value) for value in row.values()] for row in rows)]
    width = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        print("  ".join(cell.rjust(size) for cell, size in zip(line, width, strict=True)))


if __name__ == "__main__":
    main()
