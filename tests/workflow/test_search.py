"""Settings that are searched: which trials run, which of them decides, and what is done again."""

import json

import pandas as pd
import pytest

from workflow.checkout import TINY, Checkout

SEARCH = (
    TINY
    + """\
search:
  grid: {softmax: {optimizer.learning_rate: [1.0e-6, 0.3]}, one-vs-each: {optimizer.learning_rate: [0.001, 1.0e+38]}}
  share: 0.5
  budget: {epochs: 2}
"""
)
FOLDER = "results/tiny/search/digits"
FITS = [f"results/tiny/fits/digits/{method}/seed-0/status.json" for method in ("softmax", "one-vs-each")]


def jobs(tree, *arguments):
    return tree.jobs(*FITS, *arguments, config="search.yaml")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A working tree where the fits of a searching experiment have run, and no more."""
    tree = Checkout(tmp_path_factory.mktemp("searched"))
    (tree.folder / "search.yaml").write_text(SEARCH)
    tree.snakemake(*FITS, config="search.yaml")
    return tree


def test_every_point_of_a_grid_is_tried_before_a_fit(checkout):
    (checkout.folder / "search.yaml").write_text(SEARCH)
    assert jobs(checkout) == {"download": 1, "prepare": 1, "trial": 4, "grid": 2, "choose": 2, "train": 2}


def read(tree, name):
    return json.loads((tree.folder / name).read_text())


@pytest.mark.slow
def test_the_best_trial_on_validation_rows_is_taken(searched):
    for method, rate in (("softmax", 0.3), ("one-vs-each", 0.001)):
        chosen = read(searched, f"{FOLDER}/{method}/chosen.json")
        assert chosen["settings"] == {"optimizer": {"learning_rate": rate}}
        histories = {
            trial["name"]: pd.read_csv(searched.folder / FOLDER / method / trial["name"] / "history.csv")
            for trial in chosen["trials"]
        }
        for trial in chosen["trials"]:
            last = histories[trial["name"]]["validation_log_likelihood"].iloc[-1]
            assert trial["value"] == (None if "e+38" in trial["name"] else pytest.approx(last))
        status = read(searched, f"results/tiny/fits/digits/{method}/seed-0/status.json")
        assert status["parameters"]["optimizer"]["learning_rate"] == rate
        assert "trial" not in status


@pytest.mark.slow
def test_a_trial_trains_on_its_share_for_its_own_budget(searched):
    trial = read(searched, f"{FOLDER}/softmax/optimizer.learning_rate-0.3/status.json")
    fit = read(searched, FITS[0])
    assert (trial["trial"], trial["budget"]) == ("optimizer.learning_rate-0.3", {"epochs": 2})
    assert trial["data"]["n_train"] == round(0.5 * fit["data"]["n_train"])
    assert trial["epoch"] == 2
    assert not (searched.folder / FOLDER / "softmax" / "optimizer.learning_rate-0.3" / "model.h5").exists()


@pytest.mark.slow
def test_what_is_there_is_not_tried_again(searched):
    assert jobs(searched) == {}
    with searched.edited("search.yaml", "[1.0e-6, 0.3]", "[1.0e-6, 0.3, 0.6]"):
        assert jobs(searched) == {"trial": 1, "grid": 1, "choose": 1, "train": 1}
    with searched.edited("search.yaml", "share: 0.5", "share: 0.6"):
        assert jobs(searched) == {"trial": 4, "choose": 2, "train": 2}
    with searched.edited("search.yaml", "budget: {epochs: 1}", "budget: {epochs: 3}"):
        assert jobs(searched) == {"train": 2}


@pytest.mark.slow
def test_an_interrupted_search_goes_on_with_what_is_missing(searched):
    folder = searched.folder / FOLDER / "softmax"
    lost = [folder / "chosen.json", folder / "optimizer.learning_rate-0.3" / "status.json", searched.folder / FITS[0]]
    for path in lost:
        path.unlink()
    assert jobs(searched) == {"trial": 1, "choose": 1, "train": 1}
    searched.snakemake(*FITS, config="search.yaml")
    assert read(searched, f"{FOLDER}/softmax/chosen.json")["name"] == "optimizer.learning_rate-0.3"
    assert jobs(searched) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trial", "by", "message"),
    [
        (
            "optimizer.learning_rate-0.001",
            "validation_nothing",
            "unknown column 'validation_nothing'; known: validation_log_likelihood, ",
        ),
        ("optimizer.learning_rate-1e+38", "validation_accuracy", "all trials diverged; search smaller rates"),
    ],
)
def test_a_search_that_cannot_choose_says_so(searched, trial, by, message):
    arguments = [f"{FOLDER}/one-vs-each", "--grid", json.dumps({trial: {}}), "--by", by, "-o", "x.json"]
    done = searched.run("python", "-m", "xsoftmax", "choose", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (searched.folder / "x.json").exists()
