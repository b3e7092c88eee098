"""Shared by all tests: where the oracles are, and how hypothesis runs."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import sysconfig
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before numpy is loaded: the matrices here are small, and threads that wait for each other make the
# suite slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# In every import mode: `import oracles` from here, `import benchmarks` and `import campaigns` from
# beside the package.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

# A script that starts the tests in the background has them ignore Ctrl-C, which some of them are
# about.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Plug-ins that somebody has installed into this environment change no test: those of a test lie in
# its own folder.
_every_entry_point = metadata.entry_points


def _without_installed_plugins(**chosen):
    found = _every_entry_point(**chosen)
    if not chosen.get("group", "").startswith("nbv_planner."):
        return found
    installed = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    return [
        entry
        for entry in found
        if Path(entry.dist.locate_file("")) not in installed or entry.value.startswith("nbv_bench.")
    ]


metadata.entry_points = _without_installed_plugins

# Derandomised: a test run is repeatable; no deadline: speed is measured in benchmarks/, not
# asserted here.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
# A commit is held to some examples of each property, a release to as many as hypothesis has by
# default. Where a test says its number itself, that is it.
settings.register_profile("commit", settings.get_profile("repeatable"), max_examples=40)
settings.load_profile("repeatable")


def pytest_configure(config):
    """Choose the number of examples."""
    if "not release" in config.option.markexpr.split(" and "):
        settings.load_profile("commit")


# What starts processes, runs sweeps, draws or computes for many seconds: left out of
# `make test-fast`.
SLOW = {
    "bags",
    "benchmarking",
    "cli",
    "episode",
    "evaluation",
    "experiments",
    "faults",
    "launch",
    "objects",
    "report",
    "ros",
    "view",
}
SLOW_MODULES = {
    "test_api.py",
    "test_behind_obstacles.py",
    "test_condensed.py",
    "test_free_view_space.py",
    "test_hybrid.py",
    "test_known_mesh.py",
    "test_listed_views.py",
    "test_looks_on_the_way.py",
    "test_object_search.py",
    "test_only_barred.py",
    "test_overlap.py",
    "test_plugins.py",
    "test_ray_casting.py",
    "test_release.py",
    "test_rivals.py",
    "test_robust_mapper.py",
    "test_robust_state.py",
    "test_scale.py",
    "test_seam.py",
    "test_setting_limits.py",
    "test_simulation.py",
    "test_space_checks.py",
    "test_surface_map.py",
    "test_system.py",
    "test_tour.py",
    "test_tree.py",
    "test_volume.py",
    "test_volume_episodes.py",
    "test_volume_loop.py",
}

# What a commit seldom breaks and what lasts: the wheel in an environment of its own, notebooks,
# another simulator, campaigns; tests that are marked so themselves beside shorter ones of the same
# file. `make test-all` runs it, before a release.
RELEASE = {"faults"}
RELEASE_MODULES = {
    "test_release.py",
    "test_mujoco_example.py",
    "test_mujoco_table.py",
    "test_faults.py",
    "test_cluster.py",
}
# A part of these is run at every commit in another test, or with other arguments of the same one.
RELEASE_TESTS = {
    "test_a_blind_view_is_the_same_whatever_the_object",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[circle 10-by band]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[circle 10-certified]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[ellipse 5-by band]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[ellipse 5-certified]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[ellipse 6 m-by band]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[ellipse 6 m-certified]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[square 10-by band]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[star 10-by band]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[star 10-certified]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[star 6 m-by band]",
    "test_a_camera_that_sees_less_than_declared_ends_no_episode_early[star 6 m-certified]",
    "test_a_campaign_runs_and_goes_on_where_it_was",
    "test_a_cut_below_that_cannot_be_a_prior_is_said_and_the_series_goes_on",
    "test_a_matplotlibrc_of_the_user_changes_no_picture",
    "test_a_notebook_runs_as_a_reader_runs_it",
    "test_a_quarter_that_matters_takes_fewer_views_than_the_whole[volume]",
    "test_a_reader_that_has_gone_ends_the_command_quietly[show-buffered]",
    "test_a_reader_that_has_gone_ends_the_command_quietly[simulate-unbuffered]",
    "test_a_short_run_on_three_processes",
    "test_a_signal_keeps_what_is_finished_and_says_how_to_continue[2-kinds2]",
    "test_a_signal_saves_what_there_is[2-kinds1]",
    "test_a_signal_saves_what_there_is[2-kinds2]",
    "test_a_signal_saves_what_there_is[2-kinds3]",
    "test_a_terminal_that_is_closed_takes_nothing_with_it",
    "test_a_varied_sweep_is_resumed_where_it_was",
    "test_absurd_surfaces_are_judged_as_they_are[3e+38]",
    "test_after_ctrl_c_nothing_is_lost",
    "test_an_object_of_another_size_is_looked_at_the_same",
    "test_an_object_that_is_not_star_shaped_is_found_and_covered[letter:C-volume]",
    "test_an_object_that_is_not_star_shaped_is_found_and_covered[two_boxes-auto]",
    "test_an_outline_that_is_no_radius_saves_views",
    "test_ctrl_c_keeps_the_counts_so_far",
    "test_each_takes_views_of_an_episode[average_entropy]",
    "test_each_takes_views_of_an_episode[occlusion_aware]",
    "test_each_takes_views_of_an_episode[projection]",
    "test_each_takes_views_of_an_episode[proximity_count]",
    "test_each_takes_views_of_an_episode[rear_side]",
    "test_each_takes_views_of_an_episode[unobserved]",
    "test_every_part_gives_rows_of_positive_numbers[all]",
    "test_flipped_and_missing_bytes_end_in_no_traceback[sqlite3]",
    "test_from_poses_of_a_file_the_processes_cover_the_object_as_the_simulation_does",
    "test_killed_again_and_again_it_ends_with_the_same_episodes",
    "test_knowing_the_object_takes_fewer_views_than_an_even_design_even_after_a_blind_view",
    "test_greedy_cs_exceeds_the_sum_that_the_thesis_states_for_it",
    "test_knowing_the_object_takes_no_more_views_and_settings_reach_the_episode",
    "test_node_that_dies_is_started_again_on_request_and_no_view_is_lost",
    "test_nor_is_the_completeness_claimed_early[10.0-star]",
    "test_nor_is_the_completeness_claimed_early[5.0-ellipse:a=6,b=4]",
    "test_objects_of_any_outline_end_covered_and_the_claim_is_true[letter:L]",
    "test_objects_of_any_outline_end_covered_and_the_claim_is_true[letter:T]",
    "test_objects_of_any_outline_end_covered_and_the_claim_is_true[outline:hook]",
    "test_objects_of_any_outline_end_covered_and_the_claim_is_true[two_boxes]",
    "test_of_objects_as_their_outline_about_one_in_twenty_has_a_false_stretch",
    "test_page_of_running_nodes",
    "test_processes_and_simulation_average_the_same_scans_of_a_view",
    "test_quick_rows_of_cells_are_of_both_planners_with_consistent_figures",
    "test_records_are_those_of_one_process_though_a_worker_is_killed",
    "test_report_writes_table_picture_and_words",
    "test_samples_have_the_moments_of_the_exact_posterior[3]",
    "test_several_scans_of_a_view_do_not_accuse_a_right_world_of_its_corners[7]",
    "test_sigterm_keeps_the_same_though_nobody_reads_any_more_and_ends_the_bag",
    "test_the_example_runs_by_name_in_a_bench",
    "test_the_example_runs_by_name_in_a_sweep_and_its_report",
    "test_the_example_runs_by_name_in_nodes_and_in_a_replay_of_their_bag",
    "test_the_file_for_a_solid_is_simulated[solid]",
    "test_the_same_scene_takes_the_same_views_at_every_scale[U-prior:3]",
    "test_the_same_scene_takes_the_same_views_at_every_scale[rollout-random:flower:17]",
    "test_the_planner_that_knows_the_object_completes_it_in_fewer_views_than_one_of_points",
    "test_the_site_builds_into_an_empty_folder_without_a_warning_and_takes_no_comment_for_a_type",
    "test_the_star_is_reconstructed_from_scans_of_another_simulator",
    "test_the_subcommand_record_as_a_process[15-sqlite3]",
    "test_the_subcommand_record_as_a_process[2-sqlite3]",
    "test_the_subcommand_record_as_a_process[9-mcap]",
    "test_the_sweep_of_the_tutorial_has_a_reference_everywhere_that_no_planner_beats",
    "test_thesis_episode_is_that_of_a_plain_program[polygon:concave-CS-U]",
    "test_thesis_episode_is_that_of_a_plain_program[square:width=4-UP]",
    "test_views_are_chosen_among_poses_anywhere_around_the_object[file]",
    "test_where_the_radius_is_given_up_another_rule_takes_the_place_of_a_plug_in",
    "test_with_its_outline_an_object_takes_fewer_views",
    "test_with_the_robots_file_an_episode_ends_as_its_comment_says[init]",
    "test_without_bars_nothing_is_drawn_for_it_and_every_view_is_as_if_it_could_not_be_judged[IOA]",
    "test_without_bars_nothing_is_drawn_for_it_and_every_view_is_as_if_it_could_not_be_judged[uniform]",
    "test_without_being_overruled_its_regret_exceeds_the_bound",
}

# The files that last longest, longest first: begun last, one of them would keep a single worker
# busy at the end.
LONG_FILES = (
    "test_tutorials.py",
    "test_scripted_robots.py",
    "test_other_robots.py",
    "test_faults.py",
    "test_launch_files.py",
    "test_launch_bags.py",
    "test_mujoco_example.py",
    "test_demo.py",
    "test_published_tables.py",
    "test_simulate_solid.py",
    "test_end_to_end.py",
    "test_unknown_scene.py",
    "test_seen_by_beams.py",
    "test_volume_episodes.py",
    "test_odd_environments.py",
    "test_report.py",
    "test_hostile_bags.py",
    "test_simulation.py",
    "test_only_barred.py",
    "test_simulate.py",
    "test_setting_limits.py",
    "test_experiment.py",
    "test_object_search.py",
    "test_environment.py",
    "test_replay.py",
    "test_solid_nodes.py",
    "test_bag_subcommands.py",
    "test_bench_subcommand.py",
    "test_analysis.py",
    "test_plugins.py",
    "test_volume.py",
    "test_sweep_file.py",
    "test_parameters.py",
    "test_recorder.py",
    "test_view.py",
    "test_demo_record.py",
    "test_api.py",
)


HERE = Path(__file__).parent
OF_TABLES = re.compile(r"nbv_bench\.(statistics|experiments\.summary)|hand_made")


def _slow(path):
    return bool(SLOW.intersection(path.relative_to(HERE).parts)) or path.name in SLOW_MODULES


def _before_a_release(path):
    return bool(RELEASE.intersection(path.relative_to(HERE).parts)) or path.name in RELEASE_MODULES


def pytest_ignore_collect(collection_path, config):
    """Leave out what needs pandas where it is missing, as where ROS alone is installed: it is in
    the extra `bench`. Files of which -m takes no test are not even loaded.
    """
    if collection_path.suffix != ".py":
        return None
    wanted = config.option.markexpr.split(" and ")
    if "not slow" in wanted and _slow(collection_path):
        return True
    if "not release" in wanted and _before_a_release(collection_path):
        return True
    if find_spec("pandas") is not None:
        return None
    return OF_TABLES.search(collection_path.read_text(encoding="utf-8")) is not None or None


def pytest_collection_modifyitems(items):
    """Mark the slow tests and those before a release, and put those of the longest files first."""
    places = {name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    for item in items:
        if _slow(item.path):
            item.add_marker("slow")
        names = item.name, getattr(item, "originalname", "")
        if _before_a_release(item.path) or RELEASE_TESTS.intersection(names):
            item.add_marker("release")


def pytest_collection_finish():
    """Leave what has been collected, half a million objects, out of every later collection of
    garbage: of the time of the tests of nodes they would take a quarter.
    """
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path, parent):
    """Collect as pytest itself does: launch_testing's plugin imports each module while its folder
    is collected.

    There a module that skips itself would take all tests of the folder with it.
    """
    return pytest.Module.from_parent(parent, path=module_path)
