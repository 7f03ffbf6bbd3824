import pytest

from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError


def test_names_are_file_names_with_hyphens():
    assert {"double-sum", "negative-sampling", "one-vs-each", "softmax"} <= set(registry.names("xsoftmax.objectives"))
    assert {"all", "frequency", "tree", "uniform"} <= set(registry.names("xsoftmax.proposals"))
    assert {"adagrad", "implicit", "lbfgs", "sgd", "u-max"} <= set(registry.names("xsoftmax.optimizers"))


@pytest.mark.parametrize("package", ["xsoftmax.objectives", "xsoftmax.proposals", "xsoftmax.optimizers"])
def test_every_name_can_be_loaded(package):
    for name in registry.names(package):
        assert hasattr(registry.load(package, name), "MEMBER")


@pytest.mark.parametrize("name", ["sofmax", "", "__init__", "one_vs_each", 3, None])
def test_an_unknown_name_lists_the_known(name):
    with pytest.raises(InputError, match=r"unknown objective .*; known: .*double-sum, .*softmax"):
        registry.load("xsoftmax.objectives", name)
