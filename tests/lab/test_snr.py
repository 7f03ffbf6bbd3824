"""The verb snr, on the data set that is shipped for it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from xsoftmax.cli import main
from xsoftmax.data.readers.contingency import conditional_probabilities, read
from xsoftmax.internal.errors import InputError

CONFIG = Path(__file__).parents[2] / "config" / "datasets" / "contingency.yaml"


@pytest.fixture(scope="module")
def prepared_file(tmp_path_factory):
    """Downloaded and prepared as a user does, without a mirror."""
    folder = tmp_path_factory.mktemp("contingency")
    assert main(["download", str(CONFIG), "-o", str(folder / "raw")]) == 0
    assert main(["prepare", str(CONFIG), "--raw", str(folder / "raw"), "-o", str(folder / "contingency.h5")]) == 0
    return folder / "contingency.h5"


@pytest.mark.slow
def test_table_and_figure(prepared_file, tmp_path, capsys):
    written = [str(tmp_path / "snr.csv"), "--figure", str(tmp_path / "below" / "snr.svg")]
    proposals = ["uniform", "frequency", "tree", "{name: tree, dimension: 2}"]
    command = ["snr", str(prepared_file), "--proposals", *proposals, "--draws", "300000", "-o", *written]
    assert main(command) == 0
    table = pd.read_csv(tmp_path / "snr.csv").set_index("proposal")
    assert list(table.index) == ["ideal", "uniform", "frequency", "tree", "tree (dimension 2)"]
    assert (table.n_distinct == 30).all()
    assert (table.n_infinite_scores == 0).all()
    error = (table.eta_relative_measured - table.eta_relative).abs()
    assert (error <= 5 * table.standard_error).all()
    assert table.eta_relative["ideal"] == pytest.approx(1)
    rising = table.eta_relative[["uniform", "frequency", "tree (dimension 2)", "tree", "ideal"]]
    assert rising.is_monotonic_increasing
    assert table.eta_relative["uniform"] < 0.98 < 0.99 < table.eta_relative["tree"]
    assert np.allclose(table.eta, table.eta_relative / (96_000 * 30 * 19), rtol=1e-12)
    svg = (tmp_path / "below" / "snr.svg").read_text()
    assert svg.startswith("<?xml")
    assert (tmp_path / "below" / "snr.png").stat().st_size > 10_000
    printed = capsys.readouterr().out
    assert "96000 rows, 30 distinct, 20 classes" in printed
    assert "no proposal can be below 0.95000" in printed
    again = tmp_path / "again.csv"
    assert main([*command[:-3], str(again)]) == 0
    assert again.read_bytes() == (tmp_path / "snr.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--proposals", "nosuch"], "unknown proposal 'nosuch'; known: all, "),
        (["--proposals", "quadratic-kernel"], "proposal quadratic-kernel changes with the weights"),
        (["--proposals", "head"], "proposal head has some classes for certain"),
        (["--proposals", "all"], "proposal all draws none"),
        (["--proposals", "{name: tree, dimensio: 2}"], "unknown parameter 'dimensio'"),
        (["--proposals", "{name: tree"], "is not YAML"),
        (["--draws", "1"], "--draws is 1; give 2 or more"),
        (["--seed", "-1"], "--seed is -1; give 0 or more"),
    ],
)
def test_what_cannot_be_computed_is_refused(prepared_file, tmp_path, arguments, message, capsys):
    assert main(["snr", str(prepared_file), *arguments, "-o", str(tmp_path / "snr.csv")]) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_labels_follow_the_known_distribution():
    rows = read(n_samples=200_000, n_distinct=6, n_classes=5, n_clusters=2, seed=3)
    p = conditional_probabilities(6, 5, 2, 4.0, 1.0, 0.15, np.random.default_rng(3))
    assert np.allclose(p.sum(axis=1), 1)
    assert p.min() >= 0.15 / 5
    _, groups = np.unique(rows.features, axis=0, return_inverse=True)
    counts = np.zeros((6, 5))
    np.add.at(counts, (groups.ravel(), rows.labels), 1)
    observed = counts / counts.sum(axis=1, keepdims=True)
    nearest = np.abs(observed[:, None] - p).max(axis=2)
    assert (nearest.min(axis=1) < 0.02).all()
    assert sorted(nearest.argmin(axis=1)) == list(range(6))


def test_impossible_sizes_are_refused():
    with pytest.raises(InputError, match="contingency: sizes must be positive, floor within 0 and 1"):
        read(floor=1.5)
