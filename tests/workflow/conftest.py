import pytest

from workflow.checkout import Checkout, finished_tree


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """A working tree where nothing has run."""
    return Checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A working tree where the tiny experiment has run; tests leave it as they found it."""
    return finished_tree(tmp_path_factory)
