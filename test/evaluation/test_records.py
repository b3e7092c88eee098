"""What is kept of an episode."""

from __future__ import annotations

import numpy as np

from nbv_planner.versions import versions


def test_versions_name_the_package_and_what_its_numbers_rest_on():
    found = versions(ros="jazzy")
    assert {"nbv_planner", "numpy", "scipy", "python"} <= set(found)
    assert found["numpy"] == np.__version__
    assert list(found)[-1] == "ros"
    assert all(isinstance(value, str) and value for value in found.values())
