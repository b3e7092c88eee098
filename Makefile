# `make demo` and `make test` work in a fresh clone: they need Python >= 3.10 with its venv module, make, and a
# package index for pip. Everything is installed into a virtual environment inside the checkout, nothing elsewhere.
#
#   PYTHON=python3.12            the interpreter (default: python3)
#   OBJECT=letter:C              what make demo reconstructs (default: polygon:star)
#   SOLID=file:part.stl,unit=mm  what make demo3d reconstructs (default: solid:mug)
#   ROS_DISTRO_WHEELS=kilted     the ROS 2 wheels (default: jazzy), each in a folder of its own
#   PYTEST_ARGS="-k camera -x"   further arguments for pytest

PYTHON ?= python3
ROS_DISTRO_WHEELS ?= jazzy
OBJECT ?= polygon:star
SOLID ?= solid:mug
# Four at a time on two cores, since tests of nodes mostly wait; tests of one file stay together, the longest files
# first (test/conftest.py).
PYTEST_ARGS ?= -n 4 --dist loadfile --no-loadscope-reorder

VENV_jazzy := .venv
VENV_kilted := .venv-kilted
EXTRA_jazzy := ros
EXTRA_kilted := ros-kilted
VENV := $(VENV_$(ROS_DISTRO_WHEELS))
EXTRA := $(EXTRA_$(ROS_DISTRO_WHEELS))
BIN := $(VENV)/bin
LINTED := $(wildcard nbv_planner nbv_bench launch test benchmarks campaigns docs examples setup.py)

# The environment belongs to one interpreter and to one place (its scripts hold the full path): both are in the name of
# the stamp, so that another PYTHON or a moved checkout builds a new one. The base interpreter is used to build it, since
# PYTHON may be the environment's own python.
PROBE := import sys, os, zlib; \
	print("py%d.%d.%d-%08x" % (sys.version_info[:3] + (zlib.crc32(os.getcwd().encode()),)), \
	"ok" if sys.version_info >= (3, 10) else "old", getattr(sys, "_base_executable", None) or sys.executable)
INTERPRETER := $(shell $(PYTHON) -c '$(PROBE)')
KEY := $(word 1,$(INTERPRETER))
AGE := $(word 2,$(INTERPRETER))
BASE_PYTHON := $(wordlist 3,99,$(INTERPRETER))
STAMP := $(VENV)/installed-$(KEY)

# With a ROS installation sourced in this shell, its rclpy and its libraries would be mixed with the wheels; the same
# holds for the variables by which another environment's wheels mark that they have been set up. The commands below see
# none of them. To use the package with an installed ROS 2, build it with colcon instead (README).
unexport AMENT_PREFIX_PATH COLCON_PREFIX_PATH CMAKE_PREFIX_PATH PYTHONPATH PYTHONHOME LD_LIBRARY_PATH
unexport ROS_DISTRO ROS_VERSION ROS_PYTHON_VERSION RMW_IMPLEMENTATION _ROS_WHEELS_BOOTSTRAP_COMPLETE
# Without bytecode each process that a test starts compiles the package again, and each worker the tests.
unexport PYTHONDONTWRITEBYTECODE
export ROS_LOG_DIR := $(CURDIR)/build/ros_log
export MPLBACKEND := Agg
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo demo3d docs pictures test test-all test-fast test-oldest lint clean check-python

help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*  ## ' Makefile | sed 's/:.*  ## /|/' | awk -F'|' '{printf "make %-11s %s\n", $$1, $$2}'
	@echo "variables: PYTHON=$(PYTHON) ROS_DISTRO_WHEELS=$(ROS_DISTRO_WHEELS) (jazzy or kilted) PYTEST_ARGS=$(PYTEST_ARGS)"

setup: $(STAMP)  ## create the virtual environment with the ROS 2 wheels

demo: $(STAMP)  ## three nodes reconstruct OBJECT, the star polygon or another one; results in results/demo
	@mkdir -p $(ROS_LOG_DIR) results
	$(BIN)/nbv-planner demo --object $(OBJECT) --planner rollout --seed 0 --out results/demo --force

demo3d: $(STAMP)  ## the same in space, with SOLID, a mug or another one; results in results/demo3d
	@mkdir -p $(ROS_LOG_DIR) results
	$(BIN)/nbv-planner demo --object $(SOLID) --seed 0 --out results/demo3d --force

pictures: $(STAMP)  ## make the pictures in docs/ again (live.png needs Chromium)
	@mkdir -p $(ROS_LOG_DIR)
	PYTHONPATH=test/view:. $(BIN)/python benchmarks/pictures/documents.py
	for name in objects shapes concepts unknown; do PYTHONPATH=. $(BIN)/python benchmarks/pictures/$$name.py || exit 1; done

docs: $(STAMP)  ## build the documentation as a site in build/docs; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -E -q docs build/docs
	@echo "build/docs/index.html"

test: lint  ## linters, types and the tests of every commit
	@mkdir -p $(ROS_LOG_DIR)
	$(BIN)/python -m pytest -m "not release" $(PYTEST_ARGS)

test-all: lint  ## also the tests before a release: the wheel, notebooks, another simulator, campaigns
	@mkdir -p $(ROS_LOG_DIR)
	$(BIN)/python -m pytest $(PYTEST_ARGS)
	@echo "Not run: what is SKIPPED above, with the reason; the wheels of $(filter-out $(ROS_DISTRO_WHEELS),jazzy kilted); test-oldest"

# These do not wait: as many at a time as there are cores.
test-fast test-oldest: PYTEST_ARGS = -n 2 --dist loadfile --no-loadscope-reorder
test-fast: $(STAMP)  ## the tests without processes, sweeps and pictures
	$(BIN)/python -m pytest -m "not slow and not release" $(PYTEST_ARGS)

# Python 3.10 is the only one for which all of them have wheels.
test-oldest: check-python  ## the same with the oldest libraries that setup.py names: PYTHON=python3.10
	"$(BASE_PYTHON)" -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	.venv-oldest/bin/python -m pip install --quiet -e '.[analysis,bench,test]' \
	  $$(grep -oE '(numpy|scipy|pandas|matplotlib|joblib)>=[0-9.]+' setup.py | sort -u | sed 's/>=\(.*\)/==\1.*/')
	.venv-oldest/bin/python -m pytest -m "not slow and not release" $(PYTEST_ARGS)

lint: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check $(LINTED)
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/mypy

clean:  ## remove the virtual environments and everything built (results/ stays)
	rm -rf .venv .venv-kilted .venv-oldest build install log dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

check-python:
	@if [ -z "$(VENV)" ]; then \
	  echo "ROS_DISTRO_WHEELS=$(ROS_DISTRO_WHEELS): there are wheels of jazzy and of kilted" >&2; exit 2; fi
	@if [ -z "$(AGE)" ]; then \
	  echo "PYTHON=$(PYTHON) does not run: install Python 3.10 or later, or name one: make PYTHON=python3.12" >&2; exit 2; fi
	@if [ "$(AGE)" != ok ]; then \
	  echo "PYTHON=$(PYTHON) is $(firstword $(subst -, ,$(KEY))): Python 3.10 or later is needed, make PYTHON=python3.12" >&2; exit 2; fi

# A changed setup.py, or list of extras here, is installed into the existing environment; without a stamp it is built from nothing.
# Editable (-e): the tests run what is in the checkout, and configurations are found there.
$(STAMP): setup.py setup.cfg pyproject.toml Makefile | check-python
	@if [ ! -e $@ ]; then rm -rf $(VENV); "$(BASE_PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "no virtual environment: on Debian and Ubuntu, install the package python3-venv" >&2; exit 2; }; fi
	@# The pip of older interpreters (23.0 of Python 3.10) looks for versions that fit without end.
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[$(EXTRA),$(EXTRA)-test,analysis,bench,dask,irsim,mujoco,gym,test,lint,docs]'
	@touch $@
