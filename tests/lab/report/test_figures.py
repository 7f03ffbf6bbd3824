import json
import math

import matplotlib.colors
import pytest
from matplotlib.figure import Figure

from lab.report.fake_fits import METHODS, change, kept_at, write_fits
from xsoftmax.lab.report import figures, scales, tables
from xsoftmax.lab.report.appearance import COLORS, appearances_of
from xsoftmax.lab.report.compare import compare
from xsoftmax.training.folders import read_fits

SECONDS, EPOCHS = figures.PLOTS[0], figures.PLOTS[2]


def axes_of(tmp_path, plot, **options):
    fits = read_fits(write_fits(tmp_path, **options))
    figure = figures.draw(tables.curves(fits), tables.summary(fits), plot, "a title")
    return figure.axes[0]


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_the_same_fits_give_the_same_bytes(tmp_path):
    diverged = (("icd10", "u-max", 1),)
    folders = write_fits(tmp_path, seeds=(0, 1), diverged=diverged, methods=("softmax", "u-max", "adversarial"))
    compare(folders, tmp_path / "a")
    compare(reversed(folders), tmp_path / "b")
    names = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert len(names) == 6 + 2 * len(figures.PLOTS)
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_figures_of_an_earlier_comparison_go(tmp_path):
    folders = write_fits(tmp_path, datasets=("icd10", "bibtex"), methods=("softmax",))
    compare(folders, tmp_path)
    compare(folders[:1], tmp_path)
    assert all(path.name.startswith("icd10_") for path in (tmp_path / "figures").iterdir())


def test_long_times_get_a_logarithmic_axis_without_zero(tmp_path):
    axes = axes_of(tmp_path, SECONDS)
    assert axes.get_xscale() == "log"
    assert all(line.get_xdata().min() > 0.5 for line in axes.get_lines())
    assert sum(len(line.get_xdata()) for line in axes.get_lines()) == 10 * len(METHODS) + 1  # a tree's start
    assert axes.get_xlabel() == "training time (seconds)"
    assert "nats per example" in axes.get_ylabel()


def test_like_times_and_epochs_get_a_linear_axis_from_zero(tmp_path):
    axes = axes_of(tmp_path, EPOCHS)
    assert axes.get_xscale() == "linear"
    assert all(line.get_xdata()[0] == 0 for line in axes.get_lines())


def test_the_legend_is_outside_and_in_the_order_of_the_outcome(tmp_path):
    axes = axes_of(tmp_path, EPOCHS)
    last = {line.get_label(): line.get_ydata()[-1] for line in axes.get_lines()}
    assert labels(axes) == sorted(last, key=last.get, reverse=True)
    axes.figure.savefig(tmp_path / "figure.png")
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1


def test_seeds_give_a_mean_line_and_a_band(tmp_path):
    fits = read_fits(write_fits(tmp_path, seeds=(0, 1, 2), methods=("softmax",)))
    figure = figures.draw(tables.curves(fits), tables.summary(fits), EPOCHS)
    axes = figure.axes[0]
    mean = sum(fit.history.test_log_likelihood for fit in fits) / 3
    assert axes.get_lines()[0].get_ydata() == pytest.approx(mean.to_numpy(), abs=1e-12)
    assert len(axes.collections) == 1


def test_a_diverged_seed_ends_in_a_cross_and_stays_out_of_the_mean(tmp_path):
    diverged = (("icd10", "u-max", 1), ("icd10", "softmax", 0), ("icd10", "softmax", 1))
    axes = axes_of(tmp_path, EPOCHS, seeds=(0, 1), diverged=diverged, methods=("softmax", "u-max"))
    assert labels(axes) == ["u-max\n(1 of 2 diverged)", "softmax (diverged)"]
    crosses = [line for line in axes.get_lines() if line.get_marker() == "x"]
    assert [list(line.get_xdata()) for line in crosses] == [[6.0], [6.0], [6.0]]


def test_a_ring_marks_the_kept_record_of_each_seed(tmp_path):
    """A fit that diverged has none, nor has one whose status does not tell it."""
    folders = write_fits(tmp_path, seeds=(0, 1), methods=("softmax", "u-max"), diverged=(("icd10", "u-max", 0),))
    assert not figures.draw(*tabled(folders), EPOCHS).axes[0].get_legend_handles_labels()[1].count("kept")
    for folder, epoch in zip(folders[:3], (12.0, 20.0, 6.0), strict=True):
        change(folder, kept=kept_at(epoch))
    rows, summary = tabled(folders)
    axes = figures.draw(rows, summary, EPOCHS).axes[0]
    rings = [tuple(point) for drawn in axes.collections if len(drawn.get_sizes()) for point in drawn.get_offsets()]
    softmax = rows[rows.method == "softmax"]
    expected = [softmax[(softmax.seed == seed) & (softmax.epoch == at)] for seed, at in ((0, 12), (1, 20))]
    assert rings == [(row.epoch.item(), row.test_log_likelihood.item()) for row in expected]
    assert labels(axes)[-1] == "kept"


def test_long_and_odd_names_leave_the_curves_their_place(tmp_path):
    fits = read_fits(write_fits(tmp_path, methods=("softmax", "u-max")))
    fits[0].status["method"], fits[1].status["method"] = "sampled-softmax-with-" * 5, "$\\frac$"
    figure = figures.draw(tables.curves(fits), tables.summary(fits), EPOCHS, "long-" * 30 + "$^$")
    figure.savefig(tmp_path / "figure.png")
    axes = figure.axes[0]
    assert axes.get_window_extent().width > 0.4 * figure.bbox.width
    for text in (axes.get_legend(), axes._left_title):
        assert text.get_window_extent().x1 <= figure.bbox.x1


def tabled(folders):
    fits = read_fits(folders)
    return tables.curves(fits), tables.summary(fits)


def test_a_curve_that_falls_far_below_the_start_is_cut_off(tmp_path):
    fits = read_fits(write_fits(tmp_path, methods=("softmax", "u-max")))
    curves = tables.curves(fits)
    curves.loc[curves.index[-1], "test_log_likelihood"] = -1e6
    axes = figures.draw(curves, tables.summary(fits), EPOCHS).axes[0]
    assert -12 < axes.get_ylim()[0] < -7
    assert axes.get_ylim()[1] > -1.2


def test_long_trainings_get_a_logarithmic_axis_of_epochs_from_the_first_record(tmp_path):
    axes = axes_of(tmp_path, EPOCHS, epochs=50, methods=("softmax", "u-max"))
    assert axes.get_xscale() == "linear"  # ten records, the first at epoch 5
    fits = read_fits([tmp_path / f"fits/icd10/{method}/seed-0" for method in ("softmax", "u-max")])
    curves = tables.curves(fits)
    curves.loc[curves.epoch == 5, "epoch"] = 1
    axes = figures.draw(curves, tables.summary(fits), EPOCHS).axes[0]
    assert axes.get_xscale() == "log"
    assert all(line.get_xdata()[0] == 1 for line in axes.get_lines())
    assert [tick for tick in axes.get_xticks() if 1 <= tick <= 50] == [1, 2, 5, 10, 20, 50]


@pytest.mark.parametrize("plot", figures.PLOTS, ids=lambda plot: plot.name)
def test_the_start_does_not_squeeze_the_curves(tmp_path, plot):
    axes = axes_of(tmp_path, plot, methods=("softmax", "one-vs-each", "u-max"))
    later = [y for line in axes.get_lines() for x, y in line.get_xydata() if x > 0]
    ends = [(1, min(later)), (1, max(later))]
    low, high = axes.transAxes.inverted().transform(axes.transData.transform(ends))[:, 1]
    assert 0 < low < 0.1
    assert 0.9 < high < 1


def test_a_likelihood_halved_is_the_same_step_anywhere(tmp_path):
    axes = axes_of(tmp_path, EPOCHS)
    places = axes.transData.transform([(1, -0.4), (1, -0.8), (1, -1.6), (1, -3.2)])[:, 1]
    steps = places[:-1] - places[1:]
    assert steps == pytest.approx([steps[0]] * 3)
    assert steps[0] > 0


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.07, 52, [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]),
        (0.38, 5, [0.4, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5]),
        (0.395, 0.425, [0.4, 0.41, 0.42]),
        (1e-3, 1e4, [1e-3, 0.01, 0.1, 1, 10, 100, 1000, 1e4]),
    ],
)
def test_ticks_are_round_numbers(low, high, ticks):
    assert scales.plain_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize("values", [[-7.5, math.nan], [-7.5, -math.inf], [-7.5, -1e9], [-7.5, 0.0], [math.nan] * 2])
def test_odd_values_are_drawn(tmp_path, values):
    fits = read_fits(write_fits(tmp_path, methods=("softmax",)))
    curves = tables.curves(fits)[:2].assign(test_log_likelihood=values)
    for plot in (SECONDS, EPOCHS):
        figure = figures.draw(curves, tables.summary(fits), plot)
        figure.savefig(tmp_path / "figure.png")


def test_a_fit_that_diverged_before_its_first_record_is_drawn(tmp_path):
    fits = read_fits(write_fits(tmp_path, methods=("softmax", "u-max"), diverged=(("icd10", "u-max", 0),)))
    curves = tables.curves(fits)
    curves = curves[(curves.method == "softmax") | (curves.epoch == 0)]
    for plot in figures.PLOTS:
        assert isinstance(figures.draw(curves, tables.summary(fits), plot), Figure)


def test_the_methods_of_the_quick_start_have_colours_of_their_own():
    colors = {each.color for each in appearances_of(METHODS).values()}
    assert len(colors) == len(METHODS)
    assert all(map(matplotlib.colors.is_color_like, colors))


def test_twenty_methods_are_told_apart_and_others_do_not_matter():
    others = [f"method-{k}" for k in range(13)]
    given = appearances_of([*METHODS, *others])
    assert len({(each.color, each.marker) for each in given.values()}) == 20
    assert "x" not in {each.marker for each in given.values()}
    assert all(given[method] == appearances_of([method])[method] for method in METHODS)


def test_no_colour_is_there_twice_while_another_is_free():
    for start in range(20):
        names = [f"method-{k}" for k in range(start, start + len(COLORS))]
        assert {each.color for each in appearances_of(names).values()} == set(COLORS)
        assert {each.color for each in appearances_of([*names[1:], "implicit-sgd"]).values()} == set(COLORS)


def test_gaps_are_drawn_above_the_references_best(tmp_path):
    """On a logarithmic axis, lowest first in the legend, what is below the edge on it; diverged fits last."""
    folders = write_fits(tmp_path, methods=("softmax", "one-vs-each", "u-max"), diverged=(("icd10", "u-max", 0),))
    fits = read_fits(folders)
    table = tables.curves(fits, "softmax")
    softmax = table[table.method == "softmax"]
    best = softmax.regularized_log_loss.min()
    assert (table.gap == table.regularized_log_loss - best).all() or table.gap.isna().any()
    assert softmax.gap.min() == 0
    axes = figures.draw(table, tables.summary(fits), figures.GAP).axes[0]
    assert axes.get_yscale() == "log"
    assert labels(axes) == ["softmax", "one-vs-each", "u-max (diverged)"]
    by_label = {line.get_label(): line for line in axes.get_lines()}
    drawn = by_label["one-vs-each"].get_ydata()
    expected = table[(table.method == "one-vs-each") & (table.epoch > 0)].gap
    assert drawn[-len(expected) :] == pytest.approx(expected.to_numpy())
    assert by_label["softmax"].get_ydata().min() == scales.LEAST_GAP


@pytest.mark.slow
def test_gaps_are_of_each_data_set_and_only_with_a_reference(tmp_path):
    folders = write_fits(tmp_path, datasets=("icd10", "bibtex"), methods=("softmax", "u-max"))
    compare(folders, tmp_path / "with", "softmax")
    compare(folders, tmp_path / "without")
    names = [{path.name for path in (tmp_path / kind / "figures").iterdir()} for kind in ("with", "without")]
    assert names[0] - names[1] == {f"{d}_gap_by_epoch.{kind}" for d in ("icd10", "bibtex") for kind in ("svg", "png")}
    assert not names[1] - names[0]
    table = tables.curves(read_fits(folders), "softmax")
    assert (table[table.method == "softmax"].groupby("dataset").gap.min() == 0).all()


def test_a_reference_that_has_not_converged_is_warned_of(tmp_path, capsys):
    folders = write_fits(tmp_path, methods=("softmax", "u-max"))
    compare(folders, tmp_path / "short", "softmax")
    assert "warning: the reference softmax on icd10 has not converged" in capsys.readouterr().err
    path = folders[0] / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"message": "converged after 20 epochs"}))
    compare(folders, tmp_path / "long", "softmax")
    assert "warning" not in capsys.readouterr().err
