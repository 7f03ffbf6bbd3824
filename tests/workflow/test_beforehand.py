"""A tree whose regularizer is chosen by cross-validation, fitted without re-splits, in a config."""

import pytest
import yaml

from workflow.checkout import REPOSITORY, Checkout
from xsoftmax.lab.workflow.experiment import Experiment
from xsoftmax.proposals._file import read_proposal

SETTINGS = {"adversarial": {"proposal": {"dimension": 4, "folds": 3, "resplit": False}}}
NAME = "tree_dimension-4_regularizer-0.1_folds-3_resplit-false"


def test_all_parameters_are_part_of_a_trees_name():
    config = yaml.safe_load((REPOSITORY / "config" / "config.yaml").read_text()) | {"set": SETTINGS}
    task = Experiment.from_config(config, REPOSITORY / "config").tasks["icd10"]
    assert list(task.all_proposals) == [NAME]


@pytest.mark.slow
def test_a_config_with_folds_and_without_resplits_runs(tmp_path):
    checkout = Checkout(tmp_path)
    config = {"experiment": "folds", "datasets": ["digits"], "methods": ["adversarial"], "budget": {"epochs": 1}}
    with checkout.rewritten("tiny.yaml", yaml.safe_dump(config | {"set": SETTINGS})):
        checkout.snakemake("results/folds/fits/digits/adversarial/seed-0/model.h5")
    path = checkout.folder / f"results/folds/proposals/digits/{NAME}.h5"
    stored = read_proposal(path)
    assert stored.attributes["dataset"] == "digits"
    assert (stored.settings["folds"], stored.settings["resplit"]) == (3, False)
    found = stored.fit_summary
    log_likelihoods = found["cross_validation_log_likelihoods"]
    best = found["cross_validation_regularizers"][log_likelihoods.index(max(log_likelihoods))]
    assert found["chosen_regularizer"] == best
    log = checkout.folder / f"logs/folds/proposal/digits/{NAME}.log"
    assert f"chosen_regularizer: {best:.6g}" in log.read_text()
