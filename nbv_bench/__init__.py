"""What a paper needs: sweeps, their report, frozen objects to judge planners on, the optimum,
rivals.
"""
