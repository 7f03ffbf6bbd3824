import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array
from scipy.special import log_softmax

import naive
from edited import edited
from xsoftmax.data.transform import Transform
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.evaluation.weight_distance import weight_distance
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import put
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.scores import CLASSES_AT_A_TIME, ROWS_AT_A_TIME, Calibration, Scorer, weights_copied
from xsoftmax.model import DivergedError, Model, load_model, save_model
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency

NAMES = ["a", "ß∂", "class with spaces", "0"]


def model_of(n_features=5, **changes):
    W = np.random.default_rng(0).standard_normal((4, n_features + 1)).astype(np.float32)
    given = {
        "rows": W,
        "class_names": NAMES,
        "n_features": n_features,
        "attributes": {"method": "m", "status": "finished"},
    }
    return Model.of_rows(**(given | changes))


def test_a_model_survives_being_stored(tmp_path):
    correction = Frequency().fit(TrainingSet(None, np.array([0, 1, 1, 2, 3]), 4))
    model = model_of(bias=False, correction=correction, transform=Transform("dense", n_columns=5))
    save_model(model, tmp_path / "model.h5")
    loaded = load_model(tmp_path / "model.h5")
    assert np.array_equal(loaded.rows, model.rows)
    assert loaded.rows.dtype == np.float32
    assert (loaded.class_names, loaded.n_features, loaded.bias) == (NAMES, 5, False)
    assert loaded.attributes == model.attributes
    assert loaded.transform.n_columns == 5
    assert np.array_equal(loaded.correction.log_q(None, 0, 4), correction.log_q(None, 0, 4))
    assert [path.name for path in tmp_path.iterdir()] == ["model.h5"]


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_sparse_weights_survive_their_file_and_score_as_dense_ones(storage, tmp_path):
    rng = np.random.default_rng(2)
    W = np.where(rng.random((9, 5)) < 0.4, rng.standard_normal((9, 5)), 0).astype(np.float32)
    b, X = rng.standard_normal(9).astype(np.float32), storage(rng.standard_normal((8, 5)).astype(np.float32))
    given = {"class_names": [str(k) for k in range(9)], "n_features": 5, "b": b, "attributes": {"status": "finished"}}
    dense, sparse = (Model(kind(W), **given) for kind in (np.asarray, csc_array))
    save_model(sparse, tmp_path / "model.h5")
    loaded, y = load_model(tmp_path / "model.h5"), np.arange(8, dtype=np.int32)
    assert loaded.W.format == "csc"
    assert np.array_equal(loaded.rows, dense.rows)
    for blocks in ({}, {"classes_at_a_time": 2, "rows_at_a_time": 3}):
        assert np.allclose(visited(loaded, X, **blocks)[0], visited(dense, X, **blocks)[0], rtol=1e-5, atol=1e-6)
    assert np.allclose(loaded.true_scores(X, y), dense.true_scores(X, y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 3, "rows_at_a_time": 7}])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_calibration_multiplies_corrected_scores_wherever_they_are_taken(storage, blocks, tmp_path):
    """Likelihoods, ranks and the best classes, from a file too, against numpy."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, 5)).astype(np.float32), rng.integers(0, 11, 20).astype(np.int32)
    correction = Frequency().fit(TrainingSet(None, np.r_[np.arange(11), y], 11))
    model = replace(large_model(11, 5), correction=correction, attributes={"status": "finished"})
    trained = naive.scores(X, model.rows)
    corrected = trained + correction.log_q(None, 0, 11)
    for beta in (0.3, 1.0, 2.5):
        save_model(replace(model, calibration=Calibration(beta)), tmp_path / "model.h5")
        calibrated = load_model(tmp_path / "model.h5")
        assert calibrated.calibration == Calibration(beta)
        expected = log_softmax(beta * corrected, axis=1)
        found = score_rows(calibrated, storage(X), y, **blocks)
        assert np.allclose(found.log_likelihood, expected[np.arange(20), y], rtol=1e-4, atol=1e-5)
        higher = corrected >= corrected[np.arange(20), y][:, None]
        assert np.array_equal(found.rank, higher.sum(axis=1) - 1)
        best = top_k(calibrated, storage(X), 4, **blocks)
        order = np.argsort(-corrected, axis=1)[:, :4]
        assert np.array_equal(best.classes, order)
        assert np.allclose(best.probabilities, np.exp(np.take_along_axis(expected, order, axis=1)), rtol=1e-4)
        scores = visited(calibrated, storage(X), **blocks)[0]
        true = calibrated.true_scores(storage(X), y)
        assert np.allclose(true, scores[np.arange(20), y], rtol=1e-5, atol=1e-5)
        assert np.allclose(visited(calibrated.without_correction(), storage(X))[0], trained, rtol=1e-4, atol=1e-5)
    assert model.calibration is None


@pytest.mark.parametrize("link", ["probit", "logistic"])
def test_other_links_take_calibrated_scores(link):
    X, y = np.random.default_rng(3).standard_normal((6, 5)).astype(np.float32), np.arange(6, dtype=np.int32) % 4
    model = model_of(link=link)
    scaled = Model.of_rows(0.5 * model.rows, NAMES, 5, link=link)
    found, expected = (score_rows(each, X, y) for each in (replace(model, calibration=Calibration(0.5)), scaled))
    assert np.allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-5)


def test_a_model_is_as_close_to_a_reference_as_its_calibrated_weights():
    model = model_of()
    doubled = Model.of_rows(2 * model.rows, NAMES, 5)
    assert weight_distance(replace(model, calibration=Calibration(2.0)), doubled) == pytest.approx(0, abs=1e-6)
    assert weight_distance(model, doubled) == pytest.approx(0.5)


def test_a_calibration_is_a_positive_number():
    for wrong in (0.0, -1.0, np.nan, np.inf, 1e-60, 1e60):
        with pytest.raises(
            InputError, match=r"inverse_temperature is .*; give a finite number above 0, from 1.18e-38"
        ):
            Calibration(wrong)


@pytest.mark.fault(
    "a model whose calibration is no positive number",
    happens="it is refused as it is read",
    user="`error: …: calibration: inverse_temperature is nan; give a finite number above 0 …`",
)
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e60, "two", [1.0, 2.0], None])
def test_a_crafted_calibration(value, tmp_path):
    path = tmp_path / "model.h5"
    save_model(model_of(calibration=Calibration(2.0)), path)
    with edited(path) as file:
        del file["calibration"].attrs["inverse_temperature"]
        if value is not None:
            put(file["calibration"], inverse_temperature=value)
    with pytest.raises(InputError, match=f"^{path}: "):
        load_model(path)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("1.h5", "2.h5"):
        save_model(model_of(), tmp_path / name)
    assert (tmp_path / "1.h5").read_bytes() == (tmp_path / "2.h5").read_bytes()


def test_a_diverged_fit_has_no_model(tmp_path):
    save_model(
        model_of(rows=None, attributes={"status": "diverged", "message": "diverged at step 7"}), tmp_path / "model.h5"
    )
    with pytest.raises(DivergedError, match="diverged at step 7"):
        load_model(tmp_path / "model.h5")


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(InputError, match=r"no such file; give the model\.h5 of a fit, or train it again"):
        load_model(tmp_path / "missing.h5")
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(InputError, match="not an HDF5 file"):
        load_model(tmp_path / "text.h5")
    with edited(tmp_path / "other.h5") as file:
        put(file, kind="prepared")
    with pytest.raises(InputError, match="holds 'prepared', not a model"):
        load_model(tmp_path / "other.h5")
    save_model(model_of(), tmp_path / "old.h5")
    with edited(tmp_path / "old.h5") as file:
        put(file, schema_version=0)
    with pytest.raises(InputError, match="model of version 0, this xsoftmax reads 4"):
        load_model(tmp_path / "old.h5")


def visited(model, X, n_threads=1, **blocks):
    """Scores of all rows and classes, and the blocks that each row saw."""
    found, where = np.full((X.shape[0], model.n_classes), np.nan, np.float32), [[] for _ in range(X.shape[0])]

    def visit(block):
        rows, classes = block.scores.shape
        found[block.first_row : block.first_row + rows, block.first_class : block.first_class + classes] = (
            block.scores
        )
        for i in range(rows):
            where[block.first_row + i].append((block.first_class, classes))

    model.visit_scores(X, visit, ThreadPool(n_threads), **blocks)
    return found, where


def large_model(n_classes, n_features, dtype_of=np.asarray):
    W = np.random.default_rng(0).standard_normal((n_classes, n_features + 1)).astype(np.float32)
    return Model.of_rows(dtype_of(W), [str(k) for k in range(n_classes)], n_features)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_every_row_sees_all_classes_in_order(storage):
    model, X = large_model(11, 5), np.random.default_rng(1).standard_normal((10, 5)).astype(np.float32)
    found, where = visited(model, storage(X), classes_at_a_time=3, rows_at_a_time=4)
    assert where == [[(0, 3), (3, 3), (6, 3), (9, 2)]] * 10
    assert np.allclose(found, naive.scores(X, model.rows), rtol=1e-5, atol=1e-6)
    assert np.array_equal(visited(model, storage(X))[0].argmax(axis=1), found.argmax(axis=1))


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, lambda W: np.stack([W, W], axis=1)[:, 1]])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_weights_may_lie_as_a_solver_keeps_them(storage, layout):
    X = np.random.default_rng(1).standard_normal((70, 37)).astype(np.float32)
    model, y = large_model(1100, 37, layout), np.arange(70, dtype=np.int32) * 13
    expected = naive.scores(X, model.rows)
    assert np.allclose(visited(model, storage(X))[0], expected, rtol=1e-4, atol=1e-4)
    assert np.allclose(model.true_scores(storage(X), y), expected[np.arange(70), y], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 100, "rows_at_a_time": 7}])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_scores_do_not_depend_on_the_number_of_threads(storage, blocks):
    X = np.random.default_rng(1).standard_normal((150, 40)).astype(np.float32)
    model = large_model(1234, 40)
    one, where = visited(model, storage(X), **blocks)
    for n_threads in (2, 3):
        found, where_too = visited(model, storage(X), n_threads, **blocks)
        assert np.array_equal(found, one)
        assert where_too == where


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_sparse_weights_are_copied_in_stretches(storage, monkeypatch):
    X = np.random.default_rng(1).standard_normal((20, 9)).astype(np.float32)
    model = large_model(35, 9)
    monkeypatch.setattr("xsoftmax.kernels.scores.SMALL_MODEL", 80)  # the copy is of 8 classes
    monkeypatch.setattr("xsoftmax.kernels.scores.FEWEST_WEIGHTS", 80)
    monkeypatch.setattr("xsoftmax.kernels.scores.CLASSES_OF_A_STRETCH", 17)
    for width in (1, 3, 8, 9, 35):
        found, where = visited(model, storage(X), classes_at_a_time=width)
        assert np.allclose(found, naive.scores(X, model.rows), rtol=1e-5, atol=1e-6)
        assert all(n <= width for n in np.array(where)[:, :, 1].ravel())


def test_no_more_weights_are_copied_than_memory_is_estimated_for(monkeypatch):
    model, X = large_model(35, 9), csr_array(np.eye(9, dtype=np.float32))
    monkeypatch.setattr("xsoftmax.kernels.scores.SMALL_MODEL", 80)
    monkeypatch.setattr("xsoftmax.kernels.scores.FEWEST_WEIGHTS", 80)
    scorer, most = Scorer(model, X), weights_copied(model.rows.size)
    for stretch in scorer.stretches(1):
        scorer.prepare(stretch)
        assert scorer._workspace.size <= most == 80


def test_only_blocks_of_scores_are_held():
    """At any time numpy has allocated less than two blocks for each thread, of 32 that there are."""
    model, X = large_model(4 * CLASSES_AT_A_TIME, 3), np.zeros((8 * ROWS_AT_A_TIME, 3), np.float32)
    block = 4 * CLASSES_AT_A_TIME * ROWS_AT_A_TIME
    for n_threads in (1, 2):
        model.visit_scores(X[:1], lambda block: None, ThreadPool(n_threads))
        together, met = threading.Barrier(n_threads, timeout=60), set()

        def visit(block, together=together, met=met):
            if threading.get_ident() not in met:  # all threads hold their first block at the same time
                met.add(threading.get_ident())
                together.wait()

        tracemalloc.start()
        model.visit_scores(X, visit, ThreadPool(n_threads))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert n_threads * block * 0.9 < peak < n_threads * 2 * block


def test_an_error_of_a_visit_is_not_lost():
    def visit(block):
        raise ValueError("a visit failed")

    with pytest.raises(ValueError, match="a visit failed"):
        large_model(3, 2).visit_scores(np.zeros((9, 2), np.float32), visit, ThreadPool(2))


def test_rows_of_another_width_are_refused():
    for call in (lambda X: visited(model_of(), X), lambda X: model_of().true_scores(X, np.zeros(2, np.int32))):
        with pytest.raises(InputError, match="rows have 6 features, the model 5"):
            call(np.zeros((2, 6), np.float32))


@pytest.mark.parametrize("correction", [None, object()])
def test_scores_follow_the_weights_unless_these_are_promised_not_to_change(monkeypatch, correction):
    """And what was copied for a promise is forgotten with it."""
    copies = []
    copied = Scorer._copied
    monkeypatch.setattr(Scorer, "_copied", lambda self, classes: copies.append(classes) or copied(self, classes))
    X, W = csr_array(np.eye(3, dtype=np.float32)), np.zeros((4, 4), np.float32)
    model = Model.of_rows(W, list("abcd"), 3, correction=correction)

    def first_score():
        found = []
        model.without_correction().visit_scores(X, lambda block: found.append(float(block.scores[0, 0])))
        return found[0]

    assert first_score() == 0
    W[0, 0] = 2
    assert first_score() == 2
    assert len(copies) == 2
    with model.unchanging():
        assert first_score() == first_score() == 2
    assert len(copies) == 3
    W[0, 0] = 5
    assert first_score() == 5


@pytest.mark.parametrize("threads", [1, 3])
def test_scores_that_are_held_are_computed_once_and_are_the_same(monkeypatch, threads):
    """Whatever those who see them do to them; of other rows, and afterwards, they are computed anew."""
    rng = np.random.default_rng(0)
    W, X = rng.standard_normal((2500, 4)).astype(np.float32), rng.standard_normal((1200, 3)).astype(np.float32)
    names, computed = [str(k) for k in range(2500)], []
    model = Model.of_rows(W, names, 3, calibration=Calibration(2.0))
    visited = Model._visit_scores
    monkeypatch.setattr(Model, "_visit_scores", lambda self, *args: computed.append(1) or visited(self, *args))

    def scores(rows, model=model):
        found = np.zeros((rows.shape[0], 2500), np.float32)

        def take(block):
            part, (n, width) = block.scores, block.scores.shape
            found[block.first_row : block.first_row + n, block.first_class : block.first_class + width] = part
            part[:] = np.nan

        model.visit_scores(rows, take, ThreadPool(threads))
        return found

    expected = scores(X)
    assert np.isfinite(expected).all()
    with model.holding(X):
        assert all(np.array_equal(scores(X), expected) for _ in range(3))
        assert len(computed) == 2
        assert np.array_equal(2 * scores(X, model.without_correction()), expected)
        np.testing.assert_allclose(scores(X[:5].copy()), expected[:5], rtol=1e-5, atol=1e-5)
    assert np.array_equal(scores(X), expected)
    assert len(computed) == 5
    monkeypatch.setattr("xsoftmax.model.MOST_HELD", X.shape[0] * 2500 - 1)
    with model.holding(X):
        scores(X)
        scores(X)
    assert len(computed) == 7


@pytest.mark.filterwarnings("error")
def test_weights_that_are_not_finite_give_scores_without_a_warning():
    model = model_of()
    model.W[1, 1:3] = np.inf, -np.inf
    found = []
    model.visit_scores(np.ones((3, 5), np.float32), lambda block: found.append(block.scores.copy()))
    assert np.isnan(found[0][:, 1]).all()
