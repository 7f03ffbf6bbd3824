import threading
from dataclasses import replace

import numpy as np
import pytest

from xsoftmax.internal.errors import InputError, StoppedError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.skip_gram import collapsed, fit, pair_steps, text_walk
from xsoftmax.skip_gram.neighbours import nearest, unit_rows
from xsoftmax.skip_gram.settings import LOSSES, Settings

SMALL = Settings(dimension=12, window=3, epochs=4, subsample=None)
LEARNS = {
    "negative-sampling": Settings(learning_rate=0.1, epochs=5),
    "hierarchical-softmax": Settings(learning_rate=0.1, epochs=5),
    "implicit": Settings(learning_rate=0.05, epochs=2),
    "u-max": Settings(learning_rate=0.02, epochs=3),
    "softmax": Settings(epochs=15),
}


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    """Many units in an epoch of a small text."""
    monkeypatch.setattr(text_walk, "CHUNK", 2**11)
    monkeypatch.setattr(text_walk, "CHUNKS_AT_ONCE", 2)
    monkeypatch.setattr(pair_steps, "CHUNK", 2**10)
    monkeypatch.setattr(collapsed, "SCORES_AT_ONCE", 100)
    monkeypatch.setattr(collapsed, "FOUND_AT_ONCE", 7)


def share_of_group(inputs):
    """Of the four nearest words of each, how many are of its group of five."""
    found, _ = nearest(unit_rows(inputs), np.arange(20), 4)
    return np.mean(found // 5 == np.arange(20)[:, None] // 5)


def fitted(corpus, settings, **options):
    return fit.fit(corpus, settings, **options).embedding


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("threads", [1, 2])
def test_words_of_a_group_become_neighbours(groups, loss, threads):
    settings = replace(LEARNS[loss], loss=loss, dimension=12, window=3, subsample=None, threads=threads)
    assert share_of_group(fitted(groups, settings).inputs) > 0.95


@pytest.mark.long_cases
@pytest.mark.parametrize("found_by", ["search", "clusters", "blocks"])
def test_found_classes_serve_as_well(groups, found_by):
    settings = replace(SMALL, loss="softmax", epochs=15, found_by=found_by, share=0.3, n_blocks=3)
    assert share_of_group(fitted(groups, settings).inputs) > 0.95


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_seed_gives_the_same_bits(groups, loss):
    one, again, other = (fitted(groups, replace(SMALL, loss=loss, seed=seed, epochs=1)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.inputs, again.inputs)
    np.testing.assert_array_equal(one.outputs, again.outputs)
    assert not np.array_equal(one.inputs, other.inputs)


class StopsAfter(threading.Event):
    """Is set from the n-th look on."""

    def __init__(self, n):
        super().__init__()
        self._left = n

    def is_set(self):
        self._left -= 1
        return self._left < 0


KINDS = [
    *({"loss": loss} for loss in LOSSES),
    *({"loss": "softmax", "found_by": by} for by in ("search", "clusters", "blocks")),
]


@pytest.mark.long_cases
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.fault(
    "training of vectors is killed",
    happens="goes on from its checkpoint",
    user="the same bits",
    lost="a minute's work",
)
def test_a_fit_that_is_stopped_again_and_again_ends_with_the_same_bits(groups, kind, tmp_path):
    settings, checkpoint = replace(SMALL, epochs=2, **kind), tmp_path / "checkpoint"
    whole, stops = fitted(groups, settings), 0
    while True:
        try:
            resumed = fitted(groups, settings, checkpoint=checkpoint, stop=StopsAfter(3))
            break
        except StoppedError:
            stops += 1
    assert stops >= 2
    np.testing.assert_array_equal(whole.inputs, resumed.inputs)
    np.testing.assert_array_equal(whole.outputs, resumed.outputs)


@pytest.mark.fault(
    "a checkpoint of vectors is damaged",
    happens="trained from the start",
    user="a warning",
    lost="what it held",
)
def test_a_checkpoint_that_is_damaged_or_of_another_fit_is_as_good_as_none(groups, tmp_path, capsys):
    checkpoint = tmp_path / "checkpoint"
    of_another = "is of a fit with other data, settings or code; training begins anew"
    for seed, share, said in ((1, 0.5, "training from the start"), (2, 1, of_another)):
        with pytest.raises(StoppedError):
            fit.fit(groups, replace(SMALL, seed=1), checkpoint=checkpoint, stop=StopsAfter(2))
        content = checkpoint.read_bytes()
        checkpoint.write_bytes(content[: int(share * len(content))])
        settings = replace(SMALL, seed=seed)
        found = fitted(groups, settings, checkpoint=checkpoint)
        assert said in capsys.readouterr().err
        np.testing.assert_array_equal(found.inputs, fitted(groups, settings).inputs)
        checkpoint.unlink()


def test_a_checkpoint_is_never_someone_elses_file(groups, tmp_path):
    (tmp_path / "letter").write_text("Dear all, this is the only copy of what I have to say. " * 9)
    with pytest.raises(InputError, match="is no checkpoint, and would be replaced"):
        fit.fit(groups, SMALL, checkpoint=tmp_path / "letter")


def test_a_fit_that_diverges_says_so(groups):
    settings = replace(SMALL, learning_rate=1e30)
    with pytest.raises(
        InputError, match=r"negative-sampling diverged in epoch 1: .*lower learning_rate \(now 1e\+30\)"
    ):
        fit.fit(groups, settings)


def test_the_rate_falls_to_a_ten_thousandth(groups):
    settings = replace(SMALL, learning_rate=2.0)
    assert [settings.rate_at(done) for done in (0.0, 0.5, 1.0)] == [2.0, 1.0, pytest.approx(2e-4)]


def test_memory_is_asked_for_before_it_is_taken(groups, monkeypatch):
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 1000)
    with pytest.raises(InputError, match=r"vectors of 20 words with 12 numbers: .* lower dimension"):
        fit.fit(groups, SMALL)


def test_no_epochs_leave_vectors_where_they_begin(groups):
    found = fit.fit(groups, replace(SMALL, epochs=0))
    assert found.epochs == 0
    assert abs(found.embedding.inputs).max() <= 1 / 12
    assert not found.embedding.outputs.any()


def test_pairs_are_as_many_as_the_text_has(make_corpus):
    corpus = make_corpus([[0, 1, 2, 3], [1, 0]], 4)
    settings = replace(SMALL, window=2, dynamic_window=False, epochs=1)
    method = text_walk.TextWalk(corpus, settings, fit.new_vectors(4, 12, 0))
    method.run(0, 0, method.n_units, ThreadPool())
    assert method.n_pairs[0] == 10 + 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "sofmax"}, "loss is 'sofmax'; known: .*; did you mean 'softmax'?"),
        ({"found_by": "luck"}, "found_by is 'luck'"),
        ({"window": 0}, "window is 0; set it to 1 or more"),
        ({"dimension": 10**6}, "dimension is 1000000"),
        ({"epochs": -1}, "epochs is -1; set it to 0 or more"),
        ({"learning_rate": 0.0}, "learning_rate is 0; set it to a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"power": -1.0}, "power is -1"),
        ({"share": 2.0}, "share is 2; set it to 1 or less"),
        ({"loss": "hierarchical-softmax", "warm_epochs": 1}, "inner nodes"),
    ],
)
def test_settings_that_are_none(change, message):
    with pytest.raises(InputError, match=message):
        Settings(**change)


def test_text_without_pairs(make_corpus):
    with pytest.raises(InputError, match="no two words of the vocabulary stand near each other"):
        fit.fit(make_corpus([[0], [1]], 2), replace(SMALL, loss="implicit"))
