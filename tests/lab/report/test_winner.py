import json
import math

import pytest

from lab.report.fake_fits import change, kept_at, write_fits
from xsoftmax.lab.report import tables
from xsoftmax.lab.report.page.winner import verdict
from xsoftmax.training.folders import read_fits

METHODS = ("softmax", "u-max")


def judged(folder, values, status="finished", **changes):
    """Write fits of two methods, with (validation, test) log-likelihoods of their seeds; give the verdict."""
    n = len(next(iter(values.values())))
    for path in write_fits(folder, methods=tuple(values), seeds=tuple(range(n))):
        method, seed = path.parent.name, int(path.name.removeprefix("seed-"))
        validation, test = values[method][seed]
        metrics = {"validation": {"log_likelihood": validation}, "test": {"log_likelihood": test}}
        (path / "metrics.json").write_text(json.dumps(metrics))
        if changes:
            change(path, **changes)
    return verdict(tables.summary(read_fits(sorted(folder.glob("fits/*/*/*")))))


def test_validation_rows_choose_and_test_rows_tell(tmp_path):
    found = judged(tmp_path, {"softmax": [(-1.0, -1.5)], "u-max": [(-1.1, -1.4)]})
    assert found.method == "softmax"
    assert found.sentence == (
        "By validation rows, softmax wins: test log-likelihood −1.500 nats, 0.100 behind u-max (−1.400). "
        "With one seed there is no measure of uncertainty."
    )


def test_the_margin_has_the_standard_error_of_a_difference_of_means(tmp_path):
    found = judged(
        tmp_path, {"softmax": [(-1, -1.0), (-1, -1.2), (-1, -1.4)], "u-max": [(-2, -2.0), (-2, -2.2), (-2, -2.4)]}
    )
    error = math.sqrt(2 * 0.2**2 / 3)
    assert f"−1.200 ± {0.2 / math.sqrt(3):.3f} nats, 1.000 ± {error:.3f} ahead of u-max (−2.200 ±" in found.sentence
    assert "± is the standard error over 3 seeds" in found.sentence
    assert "chance" not in found.sentence


def test_a_small_error_is_not_written_as_none(tmp_path):
    values = {"softmax": [(-1, -1.0), (-1, -1.0004)], "u-max": [(-2, -2.0), (-2, -2.0)]}
    assert "test log-likelihood −1.0002 ± 0.0002 nats" in judged(tmp_path, values).sentence


def test_a_margin_within_its_uncertainty_is_called_so(tmp_path):
    found = judged(tmp_path, {"softmax": [(-1, -1.0), (-1, -1.4)], "u-max": [(-2, -1.1), (-2, -1.5)]})
    assert "less than 2 standard errors: the order may be chance" in found.sentence


def test_a_small_margin_is_not_written_as_none(tmp_path):
    found = judged(tmp_path, {"softmax": [(-1, -1.00001)], "u-max": [(-2, -1.00002)]})
    assert "0.000010 ahead of u-max" in found.sentence
    same = judged(tmp_path / "same", {"softmax": [(-1, -1.0)], "u-max": [(-2, -1.0)]})
    assert "level with u-max" in same.sentence


def test_without_validation_rows_that_is_said(tmp_path):
    found = judged(tmp_path, {"softmax": [(None, -1.5)], "u-max": [(None, -1.4)]})
    assert found.sentence.startswith("There are no validation rows; by test rows, u-max wins")


def test_a_method_with_a_diverged_seed_comes_after_others(tmp_path):
    folders = write_fits(tmp_path, methods=METHODS, seeds=(0, 1), diverged=(("icd10", "softmax", 1),))
    found = verdict(tables.summary(read_fits(folders)))
    assert found.method == "u-max"
    assert "ahead of softmax" in found.sentence or "behind softmax" in found.sentence


@pytest.mark.parametrize(("diverged", "said"), [(("softmax",), "No other method has a value"), (METHODS, None)])
def test_what_diverged_wins_nothing(tmp_path, diverged, said):
    folders = write_fits(tmp_path, methods=METHODS, diverged=tuple(("icd10", method, 0) for method in diverged))
    found = verdict(tables.summary(read_fits(folders)))
    assert (found is None) if said is None else (found.method == "u-max" and said in found.sentence)


def test_the_seed_with_the_best_validation_rows_is_the_best_model(tmp_path):
    found = judged(tmp_path, {"softmax": [(-1.2, -1), (-1.0, -3), (-1.1, -1)], "u-max": [(-2, -2)] * 3})
    assert (found.method, found.seed) == ("softmax", 1)


def test_kept_epochs_are_told(tmp_path):
    one = judged(tmp_path / "one", {"softmax": [(-1, -1)]}, kept=kept_at(14.0))
    assert one.kept == "The weights kept are those of epoch 14 of 20 (by validation log-likelihood)."
    two = judged(tmp_path / "two", {"softmax": [(-1, -1)] * 2}, kept={"epoch": 20.0, "by": "last"})
    assert two.kept == "The weights kept are those of epoch 20 of 20 with every seed (the last)."
    folders = write_fits(tmp_path / "three", methods=("softmax",), seeds=(0, 1))
    change(folders[0], kept=kept_at(14.0))
    change(folders[1], kept=kept_at(12.0))
    three = verdict(tables.summary(read_fits(folders))).kept
    assert three == "The weights kept are those of epochs 14, 12, a seed each, of 20 (by validation log-likelihood)."
    assert judged(tmp_path / "none", {"softmax": [(-1, -1)]}).kept == ""
