import json
import math
import os
import re

import pandas as pd
import pytest

from lab.report.fake_fits import METHODS, change, kept_at, write_fits
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.report import tables
from xsoftmax.training.folders import flatten, read_fits


def test_summary_has_a_row_per_fit_with_what_the_files_say(tmp_path):
    folders = write_fits(tmp_path, seeds=(0, 1))
    table = tables.summary(read_fits(folders))
    assert len(table) == 2 * len(METHODS)
    row = table[(table.method == "adversarial") & (table.seed == 1)].iloc[0]
    folder = tmp_path / "fits/icd10/adversarial/seed-1"
    status = json.loads((folder / "status.json").read_text())
    metrics = json.loads((folder / "metrics.json").read_text())
    assert row.test_log_likelihood == metrics["test"]["log_likelihood"]
    assert row.validation_accuracy == metrics["validation"]["accuracy"]
    assert row.seconds == status["seconds"]
    assert row.peak_memory_mb == status["peak_memory_bytes"] / 1e6
    assert (row.proposal, row.n_classes) == ("tree", 1918)
    assert pd.isna(row.diverged_at_step)


def test_summary_names_the_training_objective(tmp_path):
    fits = read_fits(write_fits(tmp_path, diverged=(("icd10", "u-max", 0),)))
    table = tables.summary(fits).set_index("method")
    last = {fit.method: fit.history.iloc[-1] for fit in fits}
    assert table.objective_name["one-vs-each"] == "one-vs-each bound"
    assert table.training_objective["softmax"] == last["softmax"].objective
    assert table.train_log_likelihood["softmax"] == last["softmax"].train_log_likelihood
    assert math.isnan(table.training_objective["u-max"])


def test_training_objectives_are_means_over_seeds_that_ended_well(tmp_path):
    fits = read_fits(write_fits(tmp_path, seeds=(0, 1, 2), diverged=(("icd10", "u-max", 1),)))
    found = tables.training_objectives(tables.summary(fits))
    assert list(found.objective_name) == sorted(found.objective_name)
    row = found[found.method == "u-max"].iloc[0]
    values = [fit.history.objective.iloc[-1] for fit in fits if fit.method == "u-max" and not fit.diverged]
    assert row.objective_name == "double-sum"
    assert row.training_objective == pytest.approx(sum(values) / 2)


def test_an_objective_without_a_name_or_values_is_a_row_too(tmp_path):
    fits = read_fits(write_fits(tmp_path, methods=("softmax",)))
    fits[0].status.pop("objective_name")
    del fits[0].history["objective"]
    row = tables.training_objectives(tables.summary(fits)).iloc[0]
    assert (row.method, row.objective_name) == ("softmax", "–")
    assert math.isnan(row.training_objective)


def test_methods_are_ranked_by_mean_test_log_likelihood(tmp_path):
    fits = read_fits(write_fits(tmp_path, seeds=(0, 1, 2)))
    ranked = tables.ranking(tables.summary(fits))
    assert list(ranked.test_log_likelihood) == sorted(ranked.test_log_likelihood, reverse=True)
    assert list(ranked["rank"]) == list(range(1, len(METHODS) + 1))
    values = [fit.metrics["test"]["log_likelihood"] for fit in fits if fit.method == "u-max"]
    row = ranked[ranked.method == "u-max"].iloc[0]
    assert row.test_log_likelihood == pytest.approx(sum(values) / 3, abs=1e-12)
    assert row.test_log_likelihood_sd == pytest.approx(pd.Series(values).std(), abs=1e-12)


def test_methods_are_ranked_by_what_has_chosen_their_weights(tmp_path):
    folders = write_fits(tmp_path, methods=("softmax", "u-max"))
    best = {"softmax": {"log_likelihood": -1.0, "accuracy": 0.5}, "u-max": {"log_likelihood": -2.0, "accuracy": 0.6}}
    for folder in folders:
        of_test = json.loads((folder / "metrics.json").read_text())
        of_test["test"] |= next(values for method, values in best.items() if f"/{method}/" in f"{folder}/")
        (folder / "metrics.json").write_text(json.dumps(of_test))

    def first(*judges):
        for folder, judge in zip(folders, judges, strict=True):
            change(folder, kept={"epoch": 1.0, "by": f"validation_{judge}", "value": 0.5})
        return set(tables.ranking(tables.summary(read_fits(folders))).groupby("dataset").method.first())

    n = len(folders)
    assert first(*["log_likelihood"] * n) == {"softmax"}
    assert first(*["accuracy"] * n) == {"u-max"}
    assert first(*["accuracy"] * (n - 1), "log_likelihood") >= {"softmax"}  # they differ


def test_the_kept_epoch_is_a_mean_over_the_seeds_that_tell_it(tmp_path):
    folders = write_fits(tmp_path, seeds=(0, 1, 2), methods=("softmax",))
    change(folders[0], kept=kept_at(12.0))
    change(folders[1], kept=kept_at(16.0))
    table = tables.summary(read_fits(folders))
    assert table.kept_epoch.dropna().tolist() == [12, 16]
    assert table.kept_by[0] == "validation_log_likelihood"
    assert "| 14.0 ± 2.8 |" in tables.markdown_table(table)


def test_diverged_fits_come_last_and_do_not_spoil_the_mean(tmp_path):
    some, all_of_them = ("icd10", "softmax", 1), [("icd10", "u-max", seed) for seed in (0, 1)]
    table = tables.summary(read_fits(write_fits(tmp_path, seeds=(0, 1), diverged=(some, *all_of_them))))
    ranked = tables.ranking(table).set_index("method")
    assert ranked["rank"]["softmax"] == len(METHODS) - 1
    assert pd.isna(ranked["rank"]["u-max"])
    well = table[(table.method == "softmax") & (table.seed == 0)].iloc[0]
    assert ranked.seconds["softmax"] == well.seconds
    assert table[table.method == "u-max"].diverged_at_step.notna().all()
    assert "| – | u-max | – |" in tables.markdown_table(table)
    assert "1 of 2 diverged" in tables.markdown_table(table)


def test_a_summary_read_from_its_file_gives_the_same_tables(tmp_path):
    table = tables.summary(read_fits(write_fits(tmp_path, datasets=("icd10", "bibtex"), seeds=(0, 1))))
    table.to_csv(tmp_path / "summary.csv", index=False)
    assert tables.markdown_table(pd.read_csv(tmp_path / "summary.csv")) == tables.markdown_table(table)


def test_the_page_of_the_ranking_has_the_cells_of_the_markdown_table(tmp_path):
    table = tables.summary(read_fits(write_fits(tmp_path, datasets=("icd10", "bibtex"), seeds=(0, 1))))
    table.loc[table.method == "u-max", "method"] = "<b>&"
    page, lines = tables.html_page(table), tables.markdown_table(table).splitlines()
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["bibtex", "icd10"]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in page.split("<tr>")]
    written = [line.strip("|").split("|") for line in lines if line.startswith("|") and "--" not in line]
    assert [row for row in rows if row] == [[cell.strip() for cell in row] for row in written if row[0].strip()]
    assert "<b>" not in page


def test_a_table_has_the_metrics_of_its_kind_of_labels(tmp_path):
    fits = read_fits(write_fits(tmp_path, datasets=("icd10", "bibtex"), methods=("softmax",)))
    for fit in fits:
        if fit.dataset == "bibtex":
            fit.metrics["test"].update(
                {"p_at_3": 0.25, "psp_at_5": 0.5, "top_3_accuracy": None, "top_5_accuracy": None}
            )
    bibtex, icd10 = tables.markdown_table(tables.summary(fits)).split("**icd10**")
    assert "| accuracy | P@3 | PSP@5 |" in bibtex
    assert "| 0.250 | 0.500 |" in bibtex
    assert "| accuracy | top-3 accuracy | top-5 accuracy | kept" in icd10
    assert "P@" not in icd10


def test_all_fits_diverged_is_a_table_too(tmp_path):
    diverged = tuple(("icd10", method, 0) for method in METHODS)
    table = tables.summary(read_fits(write_fits(tmp_path, diverged=diverged)))
    assert tables.ranking(table)["rank"].isna().all()


@pytest.mark.parametrize(
    ("mean", "spread", "digits", "text"),
    [
        (-1.2345, math.nan, 3, "−1.234"),
        (-1.2345, 0.0123, 3, "−1.234 ± 0.012"),
        (1234.5, math.nan, None, "1,234"),
        (0.04567, math.nan, None, "0.0457"),
        (9.5, 0.5, None, "9.50 ± 0.50"),
        (0.0, math.nan, None, "0.00"),
        (math.nan, math.nan, 3, "–"),
    ],
)
def test_numbers_for_people(mean, spread, digits, text):
    assert tables.number(mean, spread, digits) == text


def test_curves_stack_all_histories(tmp_path):
    fits = read_fits(write_fits(tmp_path, seeds=(0, 1)))
    stacked = tables.curves(fits)
    assert list(stacked)[:3] == ["dataset", "method", "seed"]
    assert len(stacked) == sum(len(fit.history) for fit in fits)


def test_flatten():
    assert flatten({"a": {"b": {"c": 1}}, "d": 2}) == {"a.b.c": 1, "d": 2}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("metrics.json", None, "metrics.json is missing; run `python -m xsoftmax evaluate` first"),
        ("status.json", None, "status.json is missing; run `python -m xsoftmax train` first"),
        ("status.json", "{", "status.json is not JSON"),
        ("status.json", "{}", "status.json: no dataset, method, seed, status"),
        ("history.csv", None, "history.csv is missing"),
        ("history.csv", "", "history.csv is not a table"),
        ("history.csv", "epoch,step\n0,0\n", "history.csv: no column seconds, test_log_likelihood"),
    ],
)
def test_a_broken_fit_directory_is_named(tmp_path, name, content, message):
    folder = write_fits(tmp_path, methods=("softmax",))[0]
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        read_fits([folder])


def test_the_same_fit_twice_is_refused(tmp_path):
    folder = write_fits(tmp_path, methods=("softmax",))[0]
    with pytest.raises(InputError, match="both of icd10, softmax, seed 0"):
        read_fits([folder, folder])
    with pytest.raises(InputError, match="no fit directory"):
        read_fits([])


@pytest.mark.parametrize("name", ["model.h5", "status.json", "metrics.json", "history.csv"])
def test_a_fifo_among_a_fit_is_refused_not_waited_for(tmp_path, name):
    (folder,) = write_fits(tmp_path, datasets=("icd10",), methods=("softmax",), seeds=(0,))
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match=f"{name}: no regular file; delete it"):
        read_fits([folder])


@pytest.mark.parametrize(("key", "value"), [("seed", 1), ("dataset", "digits"), ("parameters", {})])
def test_a_model_of_another_fit_is_refused(tmp_path, key, value):
    (folder,) = write_fits(tmp_path, datasets=("icd10",), methods=("softmax",), seeds=(0,))
    before = (folder / "status.json").read_bytes()
    change(folder, **{key: value})
    (folder / "status.json").write_bytes(before)
    with pytest.raises(InputError, match=f"model.h5: the model of another fit .{key}: .*; delete it and start"):
        read_fits([folder])
