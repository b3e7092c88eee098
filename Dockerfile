# The package in a ROS 2 workspace, ready to launch. Another distribution: --build-arg ROS_DISTRO=jazzy
ARG ROS_DISTRO=lyrical
FROM ros:${ROS_DISTRO}-ros-base
SHELL ["/bin/bash", "-c"]
WORKDIR /workspace

# What is needed follows from the manifest alone, so that a changed source does not install it again. RViz is left out:
# a container has no screen.
COPY package.xml src/nbv_planner/
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-pip \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && PIP_BREAK_SYSTEM_PACKAGES=1 rosdep install --from-paths src --ignore-src --rosdistro "$ROS_DISTRO" -y \
        --skip-keys "rviz2 rviz_default_plugins" \
    && rm -rf /var/lib/apt/lists/*

COPY . src/nbv_planner
RUN . "/opt/ros/$ROS_DISTRO/setup.bash" && colcon build

ENTRYPOINT ["/bin/bash", "-c", ". /workspace/install/setup.bash && exec \"$@\"", "--"]
CMD ["ros2", "launch", "nbv_planner", "simulation.launch.py", "exit_when_done:=true"]
