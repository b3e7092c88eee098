"""Posterior on the grid: the fast solver against the dense one, in one run.

    python benchmarks/bench_mapper.py [--grid 1000] [--dense-up-to 1500] [n ...]

Times are processor times, the least of several rounds in which the solvers take turns, so that a busy machine does not
favour one of them. What to compare is the ratio; the milliseconds are orientation.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: processor times of several threads would add up

import numpy as np

from nbv_planner.gp.dense import dense_posterior
from nbv_planner.gp.fast import fast_posterior
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern
from nbv_planner.surface import uniform_grid


def processor_time(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def compare(kernel: PeriodicMatern, grid: np.ndarray, n: int, with_dense: bool) -> str:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    data = angle, 5.0 + np.cos(3.0 * angle) + 0.1 * rng.normal(size=n), np.full(n, 0.1)
    calls: dict[str, Callable[[], object]] = {"fast": lambda: fast_posterior(kernel, 5.0, grid, *data)}
    if with_dense:
        calls["dense"] = lambda: dense_posterior(kernel, 5.0, grid, *data)
    least = dict.fromkeys(("fast", "dense"), np.nan)
    for _ in range(5):
        for name, call in calls.items():
            repeats = 1 if name == "dense" else 5
            least[name] = np.fmin(least[name], min(processor_time(call) for _ in range(repeats)))
    error = np.nan
    if with_dense:
        error = max(float(np.abs(a - b).max()) for a, b in zip(calls["fast"](), calls["dense"](), strict=True))
    times = " ".join(f"{1e3 * least[name]:>12.2f}" for name in least)
    return f"{kernel.smoothness:>4} {n:>8} {times} {least['dense'] / least['fast']:>12.1f} {error:>12.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="*", type=int, default=[100, 500, 1500, 5000], help="numbers of measurements")
    parser.add_argument("--grid", type=int, default=1000, help="number of grid angles")
    parser.add_argument("--dense-up-to", type=int, default=5000, help="greatest n that the dense solver is timed at")
    args = parser.parse_args()
    print(f"M = {args.grid}, distinct random angles, numpy {np.__version__}")
    columns = ("fast / ms", "dense / ms", "dense / fast", "differ / m")
    print(f"{'ν':>4} {'n':>8}", *(f"{name:>12}" for name in columns))
    for nu in MATERN_SMOOTHNESS:
        for n in args.n:
            print(compare(PeriodicMatern(smoothness=nu), uniform_grid(args.grid), n, n <= args.dense_up_to), flush=True)


if __name__ == "__main__":
    main()
