"""The benchmark of skip-gram: both programs on the same sentences, gensim replaced by a stand-in."""

import json
import sys

import numpy as np
import pytest

from xsoftmax.cli import main
from xsoftmax.lab.benchmark import skip_gram as suite
from xsoftmax.skip_gram import settings
from xsoftmax.skip_gram.huffman import huffman

STAND_IN = """
import json, sys
from collections import Counter
from pathlib import Path
import numpy as np
job = json.loads(sys.stdin.read())
folder = Path(job["folder"])
words = sorted(Counter((folder / "text").read_text().split()))
n, d = len(words), job["dimension"]
np.savez(folder / "gensim.npz", inputs=np.ones((n, d), np.float32), outputs=np.zeros((n, d), np.float32))
(folder / "gensim.words").write_text("\\n".join(words))
print(json.dumps({"seconds": 2.0, "cpu_seconds": 1.0, "version": "0", "rate": job["learning_rate"]}))
"""


@pytest.fixture
def text(tmp_path):
    rng = np.random.default_rng(0)
    names = np.array([letter * 3 for letter in "abcdefgh"])
    paragraphs = [" ".join(rng.choice(names, 15)) for _ in range(200)]
    path = tmp_path / "book.txt"
    path.write_text("\n\n".join(paragraphs), encoding="utf-8")
    return path


def test_both_are_measured_on_the_same_sentences(text, tmp_path, monkeypatch, capsys):
    worker = tmp_path / "worker.py"
    worker.write_text(STAND_IN, encoding="utf-8")
    monkeypatch.setattr(suite, "WORKER", worker)
    monkeypatch.setattr(suite, "python_of", lambda name, folder: sys.executable)
    words = ["--losses", "negative-sampling", "implicit", "--epochs", "2", "--rounds", "2", "--dimension", "8"]
    assert main(["benchmark", "skip-gram", "--texts", str(text), *words, "--json", str(tmp_path / "found.json")]) == 0
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    assert [(found["program"], found["loss"]) for found in results] == [
        ("xsoftmax", "negative-sampling"), ("gensim", "negative-sampling"), ("xsoftmax", "implicit"),
    ]  # fmt: skip
    assert {found["words"] for found in results} == {180 * 15}
    gensim = results[1]["rounds"][0]
    assert gensim["log_likelihood"] == pytest.approx(-np.log(8), abs=1e-4)  # all of its scores are 0
    assert gensim["sampled_loss"] == pytest.approx(6 * np.log(2), abs=1e-4)
    assert gensim["rate"] == 0.025
    assert results[0]["rounds"][0]["log_likelihood"] == pytest.approx(-np.log(8), abs=0.2)
    shown = capsys.readouterr().out
    assert "book.txt, gensim, negative-sampling, rate 0.025: 2,700 words/s (5,400 by the processor's time)" in shown


def test_paths_of_gensim_are_put_in_our_order():
    tree = huffman(np.array([9, 5, 3, 1]))
    lengths, theirs = np.diff(tree.starts), np.array([2, 0, 3, 1])  # which of ours each of theirs is
    parts = [slice(*tree.starts[k : k + 2]) for k in theirs]
    nodes, sides = (np.concatenate([each[part] for part in parts]) for each in (tree.nodes, tree.sides))
    found = suite._tree(lengths[theirs], nodes, sides, np.argsort(theirs))
    for one, other in zip(found, tree, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rates_are_chosen_without_the_held_out_sentences(text, monkeypatch, capsys):
    tried = []
    monkeypatch.setattr(suite, "try_out", lambda corpus, every: tried.extend((corpus.n_words, s.rate) for s in every))
    monkeypatch.setattr(suite, "best", lambda _: settings.Settings(loss="softmax", learning_rate=0.5, epochs=1))
    words = ["--losses", "softmax", "--epochs", "1", "--rounds", "1", "--without-gensim", "--factors", "1", "0.5"]
    assert main(["benchmark", "skip-gram", "--texts", str(text), *words]) == 0
    assert tried == [(180 * 15, 3.0), (180 * 15, 1.5)]
    assert "softmax, rate 0.5: " in capsys.readouterr().out


def test_a_fit_that_diverges_is_a_result(text, monkeypatch, capsys):
    monkeypatch.setitem(settings.RATES, "u-max", 1e25)
    words = ["--losses", "u-max", "--epochs", "1", "--rounds", "1", "--dimension", "8", "--without-gensim"]
    assert main(["benchmark", "skip-gram", "--texts", str(text), *words]) == 0
    assert "book.txt, xsoftmax, u-max: u-max diverged in epoch 1" in capsys.readouterr().out


def test_a_worker_that_fails_says_why(text, tmp_path, monkeypatch, capsys):
    worker = tmp_path / "worker.py"
    worker.write_text("raise SystemExit('no such thing')", encoding="utf-8")
    monkeypatch.setattr(suite, "WORKER", worker)
    monkeypatch.setattr(suite, "python_of", lambda name, folder: sys.executable)
    words = ["--losses", "negative-sampling", "--epochs", "1", "--rounds", "1", "--dimension", "8"]
    assert main(["benchmark", "skip-gram", "--texts", str(text), *words]) == 1
    assert "error: gensim: no such thing" in capsys.readouterr().err
