"""A config may name one method that the others' weights are held against."""

import pytest
import yaml

from workflow.checkout import REPOSITORY, TINY
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.workflow.experiment import Experiment

TARGET = "results/tiny/fits/digits/one-vs-each/seed-0/metrics.json"


def test_it_must_be_among_the_methods():
    config = yaml.safe_load(TINY) | {"reference": "u-max"}
    with pytest.raises(InputError, match="reference: 'u-max' is not among methods"):
        Experiment.from_config(config, REPOSITORY / "config")
    assert Experiment.from_config(config | {"reference": "softmax"}, REPOSITORY / "config").name == "tiny"


def test_an_evaluation_waits_for_the_reference(checkout):
    (checkout.folder / "with.yaml").write_text(TINY + "reference: softmax\n")
    assert checkout.jobs(TARGET)["train"] == 1
    assert checkout.jobs(TARGET, config="with.yaml")["train"] == 2
    printed = checkout.snakemake("--dry-run", "--printshellcmds", TARGET, config="with.yaml")
    assert "--reference results/tiny/fits/digits/softmax/seed-0/model.h5" in printed


def test_a_reference_that_is_trained_once_is_that_of_all_seeds(checkout):
    once = TINY + "seeds: [0, 1]\nreference: softmax\nonce: [softmax]\n"
    (checkout.folder / "once.yaml").write_text(once)
    target = TARGET.replace("seed-0", "seed-1")
    assert checkout.jobs(target, config="once.yaml")["train"] == 2
    printed = checkout.snakemake("--dry-run", "--printshellcmds", target, config="once.yaml")
    assert "--reference results/tiny/fits/digits/softmax/seed-0/model.h5" in printed
