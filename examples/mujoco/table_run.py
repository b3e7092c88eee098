"""The turntable in one command: table and arm in MuJoCo, surface_mapper and nbv_planner as
processes over DDS, and a judge, which alone has the mesh of the part.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np

from nbv_planner.cli.demo import lead
from nbv_planner.cli.options import whole_number
from nbv_planner.cli.output import EXIT_CODES, say
from nbv_planner.cli.simulate import (
    finish_solid,
    print_solid_header,
    print_solid_view,
    solid_stopped,
)
from nbv_planner.episode import parameter_files
from nbv_planner.episode.solid.solid_episode import SolidJudge
from nbv_planner.episode.solid.solid_settings import SOLID_NODES, SolidConfig
from nbv_planner.errors import NbvPlannerError, install_hint
from nbv_planner.files.results_folder import ResultsFolder, fresh_folder, write_whole
from nbv_planner.ros.node_processes import free_domain_id
from nbv_planner.ros.watched_episode import SolidMonitor, watch
from nbv_planner.system import held_signals
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.bodies.mesh_files import stl_bytes

try:
    import mujoco
    from table import WORLD
except ImportError as error:
    sys.exit(f"cannot import {error.name}: {install_hint('ros,analysis,mujoco')}")

HERE = Path(__file__).resolve().parent
OBJECT_GROUP = 1
# Corners of a box by the bits of their number, and its faces, seen from outside.
CORNERS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
FACES = np.array([face for a, b, c, d in SIDES for face in ((a, b, c), (a, c, d))])


def part() -> Mesh:
    """The boxes of the part in the frame of the table; what is inside of another nobody sees."""
    model = mujoco.MjModel.from_xml_path(str(WORLD))
    boxes = np.flatnonzero(model.geom_group == OBJECT_GROUP)
    vertices = [model.geom_pos[box] + CORNERS * model.geom_size[box] for box in boxes]
    faces = [FACES + len(CORNERS) * number for number in range(len(boxes))]
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def parameters_of(part_file: Path) -> parameter_files.Parameters:
    """Parameters of the nodes, and the part, which the judge alone reads."""
    shipped = parameter_files.shared_file("config/space/solid.yaml")
    parameters = parameter_files.load_parameters(shipped, nodes=SOLID_NODES)
    given = parameter_files.load_parameters(HERE / "table.yaml", nodes=SOLID_NODES)
    parameter_files.lay_over(parameters, given)
    parameters["depth_camera"]["object"] = f"file:{part_file}"
    return parameters


def run(arguments: argparse.Namespace, came: list[int]) -> int:
    """Run the episode; returns the exit code, 0 for a success."""
    path = arguments.out or fresh_folder("results", "mujoco_table")
    with ResultsFolder(path, force=arguments.force) as results:
        part_file = Path(f"{results.path}_part.stl")
        write_whole(part_file, stl_bytes(part()))
        parameters = parameters_of(part_file)
        judge = SolidJudge(SolidConfig.of(parameters))
        lead(parameters)
        file = results.folder / "parameters.yaml"
        write_whole(file, parameter_files.dump_parameters(parameters))

        def started(domain: int, pids: dict[str, int]) -> None:
            say(f"table, mapper and planner on ROS domain {domain}: {pids}")
            print_solid_header(judge)

        ended = watch(
            partial(SolidMonitor, judge, print_solid_view),
            file,
            results.folder / "logs",
            started,
            say,
            domain=free_domain_id() if arguments.domain is None else arguments.domain,
            respawn=False,
            ended=lambda: bool(came),
            bag=None,
            robot=[sys.executable, str(HERE / "table.py")],
        )
        ended = ended or solid_stopped(judge, came)
        finish_solid(results, judge, ended, figures=arguments.figures)
    return 128 + came[0] if came else EXIT_CODES.get(ended.reason, 0)


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", metavar="FOLDER", help="results folder (default: a new one in results/)"
    )
    parser.add_argument("--force", action="store_true", help="replace the results folder")
    parser.add_argument("--domain", type=whole_number(0, 232), metavar="ID", help="ROS domain")
    parser.add_argument(
        "--no-figures", dest="figures", action="store_false", help="draw no pictures"
    )
    arguments = parser.parse_args()
    try:
        with held_signals() as came:
            return run(arguments, came)
    except NbvPlannerError as error:
        say(f"error: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
