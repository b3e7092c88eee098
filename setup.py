"""Installs the package, for colcon (ament_python) and for plain pip alike."""

import re
from pathlib import Path

from setuptools import find_packages, setup

NAME = "nbv_planner"
PACKAGES = (NAME, "nbv_bench")  # what a robot runs, and what a paper needs
HERE = Path(__file__).resolve().parent

# The wheels of the real ROS 2, one distribution per environment. Every package that is imported is
# pinned here; the wheels pin what they need themselves (with ~=), so distributions cannot be mixed.
WHEELS_EXIST = (
    'platform_system == "Linux" and platform_machine == "x86_64" and implementation_name =='
    ' "cpython"'
)
ROS_WHEELS = {
    # distribution: rclpy, Fast DDS middleware, common interfaces, rcl interfaces
    "jazzy": ("7.1.6", "8.4.3", "5.3.6", "2.0.3"),
    "kilted": ("9.1.2", "9.3.3", "5.5.1", "2.3.0"),
}
COMMON_INTERFACES = ("diagnostic", "geometry", "nav", "sensor", "std", "visualization")
RCL_INTERFACES = (
    "action-msgs",
    "builtin-interfaces",
    "lifecycle-msgs",
    "rcl-interfaces",
    "rosgraph-msgs",
)


def ros_wheels(distribution):
    """Return the requirements that give the ROS 2 distribution from the package index."""
    rclpy, middleware, common, rcl = ROS_WHEELS[distribution]
    pins = {"ros-rclpy": rclpy, "ros-rmw-fastrtps-cpp": middleware, "ros-std-srvs": common}
    pins.update({f"ros-{name}-msgs": common for name in COMMON_INTERFACES})
    pins.update({f"ros-{name}": rcl for name in RCL_INTERFACES})
    return [f"{name}=={version}; {WHEELS_EXIST}" for name, version in sorted(pins.items())]


def test_wheels(distribution):
    """Return the requirements of tests that need an action: those of Nav2 are not in the package
    index.
    """
    return [f"ros-test-msgs=={ROS_WHEELS[distribution][3]}; {WHEELS_EXIST}"]


def data_files():
    """Return the files for share/: ament index marker, manifest, launch files and the tree of
    configurations.
    """
    share = Path("share") / NAME
    files = {
        Path("share/ament_index/resource_index/packages"): [Path("resource") / NAME],
        share: [Path("package.xml")],
        share / "launch": sorted(Path("launch").glob("*.launch.py")),
    }
    trees = ("config/**/*.yaml", "config/**/*.json", "rviz/**/*.rviz")
    for path in sorted(path for pattern in trees for path in Path().glob(pattern)):
        files.setdefault(share / path.parent, []).append(path)
    return [
        (str(folder), [str(path) for path in paths]) for folder, paths in files.items() if paths
    ]


def package_data():
    """Return the files inside the package that are not Python (old setuptools do not know '**')."""
    kinds = ("csv", "css", "html", "js", "json")
    files = {
        name: [path for kind in kinds for path in Path(name).glob(f"**/*.{kind}")]
        for name in PACKAGES
    }
    return {
        name: ["py.typed", *sorted(str(path.relative_to(name)) for path in paths)]
        for name, paths in files.items()
    }


def long_description():
    """Return the README without pictures and links into the checkout: the page of a package index
    has no such files.
    """
    text = (HERE / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)


setup(
    name=NAME,
    # also in package.xml, versions.py, CITATION.cff and CHANGELOG.rst; a test compares them
    version="2.0.0",
    description=(
        "Near-optimal next-best-view planning: reconstruct an object with as few views as possible"
    ),
    long_description=long_description(),
    long_description_content_type="text/markdown",
    author="nbv_planner maintainers",
    author_email="maintainers@nbv-planner.example.org",
    maintainer="nbv_planner maintainers",
    maintainer_email="maintainers@nbv-planner.example.org",
    license="Apache-2.0",
    license_files=["LICENSE", "NOTICE"],
    keywords=[
        "next best view",
        "view planning",
        "active reconstruction",
        "Gaussian process",
        "robotics",
        "ROS 2",
    ],
    classifiers=[
        "Development Status :: 5 - Production/Stable",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)),
        "Topic :: Scientific/Engineering",
        "Typing :: Typed",
    ],
    packages=find_packages(include=[f"{name}{rest}" for name in PACKAGES for rest in ("", ".*")]),
    package_data=package_data(),
    data_files=data_files(),
    zip_safe=False,
    python_requires=">=3.10",
    install_requires=["numpy>=1.21", "scipy>=1.8", "PyYAML>=5.4"],
    extras_require={
        "ros": ros_wheels("jazzy"),
        "ros-kilted": ros_wheels("kilted"),
        "ros-test": test_wheels("jazzy"),
        "ros-kilted-test": test_wheels("kilted"),
        "analysis": [
            "matplotlib>=3.5",
            "pillow>=9.0",
            "pandas>=1.4",
            "rosbags>=0.11.9",
            "lz4>=4",
            'backports.zstd>=1; python_version < "3.14"',  # Python has it from 3.14
        ],
        "docs": ["sphinx>=7", "myst-parser>=2", "furo>=2023.9"],
        # An independent simulator, for the example that drives mapper and planner with it.
        "irsim": ["ir-sim>=2.12"],
        # A physics simulator, for the kit; from 3.5 on its range finders measure depth images.
        "mujoco": ["mujoco>=3.5"],
        # Sweeps on a cluster.
        "dask": ["distributed>=2024.1"],
        # Episodes as a Gymnasium environment.
        "gym": ["gymnasium>=0.29.1"],
        # colcon runs pytest when it finds it here; launch_testing's pytest plugin stops at 8.3.
        "test": [
            "pytest>=7,<8.4",
            "pytest-xdist>=3.7",
            "hypothesis>=6.36",
            "ezdxf>=1",  # an independent reader of DXF
            # the notebooks, as a reader runs them
            "nbclient>=0.6",
            "nbformat>=5.2",
            "ipykernel>=6.9",
            # the release, as the tools of both worlds see it
            "build>=1",
            "setuptools>=64",
            "wheel",
            "catkin_pkg>=1",
        ],
        # nbv_bench: sweeps in parallel, their tables and pictures.
        "bench": ["joblib>=1.3", "pandas>=1.4", "matplotlib>=3.5", "pillow>=9.0"],
        # What python -m benchmarks compares with.
        "benchmarks": ["scikit-learn>=1.0", "pytest-benchmark>=4"],
        # Linters are tests: bounded, so that a new rule of a new release cannot break an old
        # commit.
        "lint": ["ruff~=0.17.5", "mypy~=2.4.1", "types-PyYAML"],
    },
    entry_points={
        "console_scripts": [
            "nbv-planner = nbv_planner.cli.main:main",
            "nbv-bench = nbv_bench.cli.main:main",
            "depth_camera = nbv_planner.ros.executables:depth_camera",
            "surface_mapper = nbv_planner.ros.executables:surface_mapper",
            "nbv_planner = nbv_planner.ros.executables:nbv_planner",
            "turntable = nbv_planner.ros.executables:turntable",
            "scan_maker = nbv_planner.ros.executables:scan_maker",
        ],
        "nbv_planner.judges": ["optimum = nbv_bench.optimum.best_sets:compare_with_optimum"],
        "nbv_planner.planners": [
            "volumetric = nbv_bench.rivals.volumetric:Volumetric",
            "frontier = nbv_bench.rivals.frontier:Frontier",
            "projection = nbv_bench.rivals.projection:Projection",
            "design = nbv_bench.rivals.design:Design",
            "set_cover = nbv_bench.rivals.set_cover:SetCover",
        ],
        "nbv_planner.space_planners": ["voxels = nbv_bench.rivals.voxels:Voxels"],
    },
)
