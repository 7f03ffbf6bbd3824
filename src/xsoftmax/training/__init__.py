"""The loop, schedules, checkpoints, exact solvers."""
