import csv

import numpy as np
import pytest

from lab.report.fake_fits import METHODS, write_fits
from xsoftmax.cli import main
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.report import method_figures
from xsoftmax.lab.report.compare import compare


def results(folder, **options):
    compare(write_fits(folder, **options), folder)
    return folder


def test_one_small_figure_per_method_and_the_outcome(tmp_path):
    found = results(tmp_path / "results", diverged=(("icd10", "u-max", 0),))
    folder = tmp_path / "figures"
    folder.mkdir()
    (found / "config.yaml").write_text("set: {one-vs-each: {optimizer: {learning_rate: 0.3}, l2: 2}}")
    (folder / "gone.svg").write_text("a method that is no longer there")
    assert main(["figures", str(found), "--optimum", "softmax", "-o", str(folder)]) == 0
    assert {path.stem for path in folder.glob("*.svg")} == set(METHODS)
    assert all(path.stat().st_size < 40_000 for path in folder.glob("*.svg"))
    with (folder / "outcome.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(METHODS)
    assert rows["u-max"]["status"] == "diverged"
    assert rows["u-max"]["test_log_likelihood"] == ""
    assert rows["u-max"]["set"] == ""
    assert rows["one-vs-each"]["set"] == "optimizer.learning_rate 0.3, l2 2"


def test_the_same_results_give_the_same_bytes(tmp_path):
    found = results(tmp_path / "results")
    for name in ("a", "b"):
        method_figures.write_method_figures(found, tmp_path / name, "softmax")
    for path in (tmp_path / "a").iterdir():
        content = path.read_bytes()
        assert content == (tmp_path / "b" / path.name).read_bytes()
        assert b"<dc:date>" not in content


def test_the_method_stands_before_the_others(tmp_path):
    found = results(tmp_path)
    curves = method_figures._read(found / "curves.csv")
    for axes, x in zip(
        method_figures.draw(curves, "one-vs-each", "softmax", -1.0).axes, ("epoch", "seconds"), strict=True
    ):
        own = [line for line in axes.get_lines() if line.get_color() == method_figures.ACCENT]
        grey = [line for line in axes.get_lines() if line.get_color() == method_figures.GREY]
        assert len(own) == 1
        assert len(grey) == 1
        assert np.isnan(grey[0].get_ydata()).sum() == len(METHODS) - 1
        rows = curves[(curves.method == "one-vs-each") & ((curves.epoch > 0) | (x == "epoch"))]
        assert own[0].get_ydata() == pytest.approx(rows.test_log_likelihood.to_numpy())
        assert own[0].zorder > max(line.zorder for line in grey)


@pytest.mark.slow
def test_several_data_sets_or_no_optimum_are_refused(tmp_path):
    both = results(tmp_path / "both", datasets=("icd10", "bibtex"))
    with pytest.raises(InputError, match="has 2 data sets; the figures need exactly one"):
        method_figures.write_method_figures(both, tmp_path / "figures", "softmax")
    one = results(tmp_path / "one")
    with pytest.raises(InputError, match="no method 'softmax-lbfgs'; known: adversarial"):
        method_figures.write_method_figures(one, tmp_path / "figures", "softmax-lbfgs")
    with pytest.raises(InputError, match="compare"):
        method_figures.write_method_figures(tmp_path / "none", tmp_path / "figures", "softmax")
