"""Files with a bit flipped anywhere, or cut short: refused with a message, never a wrong number."""

import numpy as np
import pytest

from faults.programs import N_CLASSES, checkpoint_of, clustered, train
from forked import run, xsoftmax
from training.same_fit import fit_of

TRIES = 4  # of each file through the real program; tests/internal/test_checksummed.py flips many more


@pytest.fixture(scope="module")
def data(prepare):
    return prepare(*clustered(1000), N_CLASSES, n_validation=100, n_test=100)


def damaged(whole, how, rng):
    """Flip a bit, or cut the end off."""
    if how == "cut":
        return whole[: rng.integers(len(whole))]
    flipped = bytearray(whole)
    flipped[rng.integers(len(flipped))] ^= 1 << rng.integers(8)
    return bytes(flipped)


@pytest.mark.long_cases
@pytest.mark.fault(
    "a prepared file, tree or model with a bit flipped or its end cut off",
    happens="the whole file is checked against its SHA-256 before any of it is used; the job fails",
    user="`error: …: damaged: …`, and which verb makes it anew",
)
@pytest.mark.parametrize("how", ["flip", "cut"])
@pytest.mark.parametrize("kind", ["prepared", "tree", "model"])
def test_no_verb_uses_a_damaged_file(kind, how, data, tmp_path):
    paths = {"prepared": tmp_path / "data.h5", "tree": tmp_path / "tree.h5", "model": tmp_path / "fit" / "model.h5"}
    paths["prepared"].write_bytes(data.read_bytes())
    assert (
        run(
            xsoftmax(
                "proposal", paths["prepared"], "--kind", "tree", "--set", '{"dimension": 3}', "-o", paths["tree"]
            )
        ).returncode
        == 0
    )
    use = train(paths["prepared"], tmp_path, "adversarial", "--epochs", 1, "--proposal", paths["tree"])
    assert run(use).returncode == 0
    if kind == "model":
        use = xsoftmax("evaluate", paths["model"], paths["prepared"], "-o", tmp_path / "metrics.json")
    whole, rng = paths[kind].read_bytes(), np.random.default_rng(0)
    for _ in range(TRIES):
        paths[kind].write_bytes(damaged(whole, how, rng))
        done = run(use)
        assert done.returncode == 1
        assert str(paths[kind]) in done.stderr
        assert any(words in done.stderr for words in ("damaged", "no checksum at its end"))
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "metrics.json").exists()
    paths[kind].write_bytes(whole)
    assert run(use).returncode == 0


@pytest.mark.long_cases
@pytest.mark.fault(
    "a checkpoint with a bit flipped or its end cut off",
    happens="it is not used: the fit begins anew, and ends with the same bits",
    user="`warning: …: damaged: …; training from the start`",
)
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_a_damaged_checkpoint_costs_time_and_no_bits(how, data, tmp_path):
    budget = ("--epochs", 5, "--points", 1)
    assert run(train(data, tmp_path, "implicit", *budget)).returncode == 0
    expected, rng = fit_of(tmp_path / "fit"), np.random.default_rng(0)
    kept = tmp_path / "kept.h5"
    words = train(data, tmp_path, "implicit", *budget, "--checkpoint", kept, "--checkpoint-seconds", 0)
    whole = checkpoint_of(words, kept)
    for _ in range(TRIES):
        kept.write_bytes(damaged(whole, how, rng))
        done = run(words)
        assert done.returncode == 0
        assert "training from the start" in done.stderr
        assert "resumed" not in done.stderr
        assert fit_of(tmp_path / "fit") == expected
