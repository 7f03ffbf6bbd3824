import pytest

from serving.models import model_of
from xsoftmax.model import save_model


@pytest.fixture
def saved(tmp_path):
    """A function that writes a model of a kind, and returns its path."""

    def write(kind, **others):
        save_model(model_of(kind, **others), tmp_path / "model.h5")
        return tmp_path / "model.h5"

    return write
