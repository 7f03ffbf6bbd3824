import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array

import naive
from xsoftmax.data.transform import Transform
from xsoftmax.errors import InputError
from xsoftmax.model import DivergedError, Model, load_model, save_model
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency

NAMES = ["a", "ß∂", "class with spaces", "0"]


def model_of(n_features=5, **changes):
    W = np.random.default_rng(0).standard_normal((4, n_features + 1)).astype(np.float32)
    given = {
        "W": W,
        "class_names": NAMES,
        "n_features": n_features,
        "attributes": {"method": "m", "status": "finished"},
    }
    return Model(**(given | changes))


def test_a_model_survives_being_stored(tmp_path):
    correction = Frequency().fit(TrainingSet(None, np.array([0, 1, 1, 2, 3]), 4))
    model = model_of(bias=False, correction=correction, transform=Transform("dense", n_columns=5))
    save_model(model, tmp_path / "model.h5")
    loaded = load_model(tmp_path / "model.h5")
    assert np.array_equal(loaded.W, model.W)
    assert loaded.W.dtype == np.float32
    assert (loaded.class_names, loaded.n_features, loaded.bias) == (NAMES, 5, False)
    assert loaded.attributes == model.attributes
    assert loaded.transform.n_columns == 5
    assert np.array_equal(loaded.correction.log_q(None, 0, 4), correction.log_q(None, 0, 4))
    assert [path.name for path in tmp_path.iterdir()] == ["model.h5"]


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("1.h5", "2.h5"):
        save_model(model_of(), tmp_path / name)
    assert (tmp_path / "1.h5").read_bytes() == (tmp_path / "2.h5").read_bytes()


def test_a_diverged_fit_has_no_model(tmp_path):
    save_model(model_of(W=None, attributes={"message": "diverged at step 7"}), tmp_path / "model.h5")
    with pytest.raises(DivergedError, match="diverged at step 7"):
        load_model(tmp_path / "model.h5")


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(InputError, match="no such file; train a model first"):
        load_model(tmp_path / "missing.h5")
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(InputError, match="not an HDF5 file"):
        load_model(tmp_path / "text.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.attrs["kind"] = "prepared"
    with pytest.raises(InputError, match="holds 'prepared', not a model"):
        load_model(tmp_path / "other.h5")
    save_model(model_of(), tmp_path / "old.h5")
    with h5py.File(tmp_path / "old.h5", "a") as file:
        file.attrs["schema_version"] = 0
    with pytest.raises(InputError, match="version 0, this program reads 1"):
        load_model(tmp_path / "old.h5")


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_score_blocks(storage):
    model, X = model_of(), np.random.default_rng(1).standard_normal((10, 5)).astype(np.float32)
    found, where = np.full((10, 4), np.nan), []
    for block in model.score_blocks(storage(X), classes_at_a_time=3, rows_at_a_time=4):
        where.append((block.first_row, block.first_class))
        rows, classes = block.scores.shape
        found[block.first_row : block.first_row + rows, block.first_class : block.first_class + classes] = (
            block.scores
        )
    assert where == [(0, 0), (4, 0), (8, 0), (0, 3), (4, 3), (8, 3)]
    assert np.allclose(found, naive.scores(X, model.W), rtol=1e-5, atol=1e-6)


def test_rows_of_another_width_are_refused():
    with pytest.raises(InputError, match="rows have 6 features, the model 5"):
        next(model_of().score_blocks(np.zeros((2, 6), np.float32)))
