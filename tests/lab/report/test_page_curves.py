import json
import math

import pytest

from lab.report.fake_fits import change, kept_at, write_fits
from xsoftmax.lab.report import tables
from xsoftmax.lab.report.appearance import MARKERS, appearances_of
from xsoftmax.lab.report.page import curves
from xsoftmax.training.folders import read_fits


def drawn(folders, reference=None):
    fits = read_fits(folders)
    names = sorted({fit.method for fit in fits})
    return fits, curves.curves_of(tables.curves(fits, reference), tables.summary(fits), appearances_of(names))


def test_a_curve_is_the_mean_over_seeds_between_the_worst_and_the_best(tmp_path):
    fits, found = drawn(write_fits(tmp_path, methods=("softmax",), seeds=(0, 1, 2)))
    (method,) = found["methods"]
    curve, histories = method["curves"]["test_log_likelihood"], [fit.history for fit in fits]
    for name, of in (("mean", lambda values: sum(values) / 3), ("low", min), ("high", max)):
        expected = [of(values) for values in zip(*(rows.test_log_likelihood for rows in histories), strict=True)]
        assert curve[name] == pytest.approx(expected, rel=1e-5)
    assert curve["x"]["seconds"] == pytest.approx(sum(rows.seconds for rows in histories).to_numpy() / 3, rel=1e-5)
    assert method["n_seeds"] == 3
    assert curve["x"]["step"] == fits[0].history.step.tolist()


def test_a_diverged_seed_is_a_curve_of_its_own(tmp_path):
    folders = write_fits(tmp_path, methods=("u-max",), seeds=(0, 1), diverged=(("icd10", "u-max", 1),))
    fits, found = drawn(folders)
    (method,) = found["methods"]
    assert method["n_seeds"] == 1
    assert [seed["seed"] for seed in method["broken"]] == [1]
    assert len(method["broken"][0]["y"]["test_accuracy"]) == len(fits[1].history)


def test_kept_records_are_those_of_each_seed(tmp_path):
    folders = write_fits(tmp_path, methods=("softmax",), seeds=(0, 1))
    change(folders[0], kept=kept_at(12.0))
    (method,) = drawn(folders)[1]["methods"]
    assert [(kept["seed"], kept["x"]["epoch"]) for kept in method["kept"]] == [(0, [12.0])]


def test_measures_are_those_that_are_known_test_rows_first(tmp_path):
    folders = write_fits(tmp_path, methods=("softmax", "u-max"))
    names = [measure["name"] for measure in drawn(folders, "softmax")[1]["measures"]]
    assert names[0] == "test_log_likelihood"
    assert names[-1] == "gap"
    assert "train_log_likelihood" in names
    assert not {"test_p_at_3", "search_recall", "objective"} & set(names)
    assert "gap" not in [measure["name"] for measure in drawn(folders)[1]["measures"]]


def test_what_is_not_finite_is_none_and_json_of_any_browser(tmp_path):
    fits = read_fits(write_fits(tmp_path, methods=("softmax",)))
    rows = tables.curves(fits)
    rows.loc[3, "test_log_likelihood"] = -math.inf
    found = curves.curves_of(rows, tables.summary(fits), appearances_of(["softmax"]))
    assert found["methods"][0]["curves"]["test_log_likelihood"]["mean"][3] is None
    json.dumps(found, allow_nan=False)


def test_every_marker_has_a_name_and_a_letter():
    assert set(MARKERS) == set(curves.MARKERS)
