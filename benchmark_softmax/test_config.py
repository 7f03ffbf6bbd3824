"""Hooks of ``benchopt test``; there is nothing to skip."""


def check_test_solver_install(solver_class):
    """Let benchopt test every solver's installation."""
