"""The one exception that means: the user can mend this."""


class InputError(ValueError):
    """Say what was wrong, the value, and what to do; the command line prints it and exits with status 1."""
