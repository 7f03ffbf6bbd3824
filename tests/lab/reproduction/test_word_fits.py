"""The verb ``words``: all methods on small texts, settings chosen on validation sentences, fits that pages read."""

import numpy as np
import pytest
import yaml
from scipy.sparse import csr_array

from xsoftmax.cli import main
from xsoftmax.lab.reproduction import word_fits
from xsoftmax.lab.reproduction.results import Results

EXPERIMENT = {
    "experiment": "small",
    "seeds": [0, 1],
    "looks": [1, 3],
    "test": 10,
    "validation": 5,
    "settings": {"dimension": 8, "window": 2, "subsample": None},
    "corpora": {"a": {"sentence": "line"}, "b": {"every": 2, "max_words": 6}},
    "methods": {
        "gd": {"loss": "softmax", "epochs": 3, "learning_rate": [1, 3]},
        "hs": {"loss": "hierarchical-softmax", "epochs": 2},
        "mips": {"loss": "softmax", "found_by": "clusters", "epochs": 2, "missing": ["none", "zero"]},
    },
}


@pytest.fixture
def text(tmp_path):
    rng = np.random.default_rng(0)
    names = np.array([letter * 3 for letter in "abcdefgh"])
    path = tmp_path / "book.txt"
    path.write_text("\n".join(" ".join(rng.choice(names, 15)) for _ in range(300)), encoding="utf-8")
    return path


def words(tmp_path, experiment, *texts):
    file = tmp_path / "experiment.yaml"
    file.write_text(yaml.safe_dump(experiment), encoding="utf-8")
    return main(["words", str(file), *texts, "-o", str(tmp_path / "results")])


@pytest.mark.slow
def test_fits_are_what_pages_read(text, tmp_path, monkeypatch):
    assert words(tmp_path, EXPERIMENT, f"a={text}", f"b={text}") == 0
    folders = sorted((tmp_path / "results/fits").glob("*/*/seed-*"))
    results = Results.read("small", folders, [], [])
    assert results.datasets == ["a", "b"]
    assert {fit.identity for fit in results.fits} == {
        (data, method, seed) for data in "ab" for method in EXPERIMENT["methods"] for seed in (0, 1)
    }
    for fit in results.fits:
        epochs = {"gd": [1, 3, 4], "hs": [1, 2], "mips": [1, 3]}[fit.method]
        assert fit.history["epoch"].tolist() == epochs
        assert np.all(np.diff(fit.history["seconds"]) > 0)
        assert fit.status["data"]["n_classes"] == {"a": 8, "b": 6}[fit.dataset]
        assert fit.status["epoch"] == epochs[-1]
        assert fit.history["objective_with_noise"].equals(fit.history["objective"])
        trials = {"gd": 2, "hs": 0, "mips": 2}[fit.method]
        assert len(fit.status["trials"]) == trials
        if not trials:
            continue
        values = [trial["value"] for trial in fit.status["trials"]]
        chosen = fit.status["trials"][int(np.argmax(values))]
        assert all(fit.status["parameters"][key] == chosen[key] for key in ("learning_rate", "missing"))
        assert {trial["epochs"] for trial in fit.status["trials"]} == {3 if fit.method == "gd" else 2}
    exact = results.of("a", "gd")[0].history
    assert exact["objective"].iloc[-1] < exact["objective"].iloc[0]
    times = {path: path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()}
    monkeypatch.setattr(word_fits, "fit", None)  # nothing is trained again
    monkeypatch.setattr(word_fits, "try_out", None)
    assert words(tmp_path, EXPERIMENT, f"a={text}", f"b={text}") == 0
    assert times == {path: path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()}


def test_more_settings_are_tried_beside_those_that_were(text, tmp_path, monkeypatch):
    """What is known is neither tried nor trained again; a run that was killed goes on after its last trial."""
    methods = {"gd": {"loss": "softmax", "epochs": 1, "learning_rate": [1e-6, 1.0]}}
    assert words(tmp_path, EXPERIMENT | {"methods": methods}, f"a={text}") == 0
    folder = tmp_path / "results/fits/a/gd/seed-0"
    before = (folder / "history.csv").stat().st_mtime_ns
    tried, real = [], word_fits.try_out

    def killed_at_the_second(training, candidates, *others):
        if len(tried) == 1:
            raise KeyboardInterrupt
        tried.append(candidates[0].rate)
        return real(training, candidates, *others)

    methods["gd"]["learning_rate"] = [1e-7, 1e-6, 1.0, 1e-8]
    monkeypatch.setattr(word_fits, "try_out", killed_at_the_second)
    assert words(tmp_path, EXPERIMENT | {"methods": methods}, f"a={text}") == 130
    monkeypatch.setattr(word_fits, "try_out", lambda *given: tried.append(given[1][0].rate) or real(*given))
    monkeypatch.setattr(word_fits, "fit", None)  # the best ones are the same, and nothing is trained again
    assert words(tmp_path, EXPERIMENT | {"methods": methods}, f"a={text}") == 0
    assert tried == [1e-7, 1e-8]
    assert (folder / "history.csv").stat().st_mtime_ns == before
    (fit,) = Results.read("small", [folder], [], []).fits
    assert [trial["learning_rate"] for trial in fit.status["trials"]] == [1e-7, 1e-6, 1.0, 1e-8]


def test_a_fit_that_diverges_is_a_result(text, tmp_path):
    methods = {"neg": {"loss": "negative-sampling", "epochs": 1, "learning_rate": [1e30]}}
    assert words(tmp_path, EXPERIMENT | {"methods": methods}, f"a={text}") == 0
    (first, _) = Results.read("small", (tmp_path / "results/fits").glob("*/*/seed-*"), [], []).fits
    assert first.diverged


@pytest.mark.parametrize(
    ("change", "text_of", "message"),
    [
        ({"seed": 1}, "a={}", "has exactly these keys: corpora, experiment, looks"),
        ({"methods": {"x": {"los": "softmax"}}}, "a={}", "small, x: unknown parameter los"),
        ({}, "c={}", "no corpus c; known: a, b"),
        ({}, "{}", "no such text; write NAME=TEXT"),
        ({}, "a={}.none", "no such text; write NAME=TEXT"),
    ],
)
def test_what_is_refused(text, tmp_path, capsys, change, text_of, message):
    assert words(tmp_path, EXPERIMENT | change, text_of.format(text)) == 1
    assert message in capsys.readouterr().err


def test_the_objective_of_frequencies_is_the_entropy_of_words_that_stand_near_any():
    """Of eight pairs four have word 0, two word 1, two word 3: 1.5 bits."""
    pairs = csr_array(np.array([[1, 2, 0, 0], [0, 0, 0, 2], [3, 0, 0, 0], [0, 0, 0, 0]], np.float32))
    assert word_fits._of_frequencies(pairs) == pytest.approx(1.5 * np.log(2))
