"""The verbs ``embed`` and ``neighbours``, as a user types them."""

import csv
import io
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from xsoftmax.cli import main
from xsoftmax.data.word2vec_files import read_word2vec

QUICK = ["--dimension", "12", "--window", "3", "--subsample", "0", "--learning-rate", "0.1"]


@pytest.fixture
def text(tmp_path, groups):
    names = [*groups.vocabulary.words, "\n"]
    path = tmp_path / "text.txt"
    path.write_text(" ".join(names[k] for k in groups.tokens).replace(" \n ", "\n"), encoding="utf-8")
    return path


def embed(*words):
    return main(["embed", *map(str, words)])


def test_from_a_text_to_neighbours(text, tmp_path, capsys):
    output, contexts = tmp_path / "vectors.bin", tmp_path / "contexts.bin"
    assert embed(text, "-o", output, "--contexts", contexts, *QUICK) == 0
    said = capsys.readouterr().out
    assert "20 words, 18,000 of 18,000 tokens; 5 epochs in" in said
    assert "words/s" in said
    assert read_word2vec(output).words == read_word2vec(contexts).words
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "vectors.bin", "contexts.bin"}
    assert main(["neighbours", str(output), "w0", "w7", "--top", "4"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["word"] for row in rows] == ["w0"] * 4 + ["w7"] * 4
    assert {row["neighbour"] for row in rows[:4]} == {"w1", "w2", "w3", "w4"}
    assert {row["neighbour"] for row in rows[4:]} == {"w5", "w6", "w8", "w9"}


def test_the_best_of_several_rates_is_taken(text, tmp_path, capsys):
    alone, chosen = tmp_path / "alone.bin", tmp_path / "chosen.bin"
    assert embed(text, "-o", alone, *QUICK) == 0
    capsys.readouterr()
    assert embed(text, "-o", chosen, *QUICK, "1e-6", "1e30") == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said[:3]] == [
        f"learning rate {each}" for each in ("0.1", "1e-06", "1e+30")
    ]
    assert said[0].endswith(" (chosen)")
    assert said[2].endswith(": diverged")
    assert alone.read_bytes() == chosen.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--loss", "hierarchical-softmax", "--contexts", "c"], "and none of contexts"),
        (["--window", "0"], "window is 0; set it to 1 or more"),
        (["--subsample", "-1"], "subsample is -1; set it to a number above 0"),
        (["--min-count", "99999"], "lower min_count (now 99999)"),
        (["--token", "w[0-9]+ w[0-9]+", "--min-count", "1"], "hold no words with white space; change token"),
        (["--contexts", "{output}"], "both write"),
    ],
)
def test_what_is_refused_before_training(text, tmp_path, capsys, options, message):
    output = tmp_path / "vectors"
    assert embed(text, "-o", output, *(each.format(output=output) for each in options)) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.startswith("error: ")
    assert not output.exists()


def test_a_text_is_not_overwritten(text, capsys):
    before = text.read_bytes()
    assert embed(text, "-o", text) == 1
    assert "is also what is read" in capsys.readouterr().err
    assert text.read_bytes() == before


@pytest.mark.slow
@pytest.mark.fault(
    "embed is killed, or told to stop",
    happens="goes on",
    user="status 143; the same bits",
    lost="since a checkpoint",
)
def test_embed_goes_on_after_it_is_stopped_and_after_it_is_killed(text, tmp_path):
    whole, resumed, checkpoint = tmp_path / "whole.bin", tmp_path / "resumed.bin", tmp_path / "checkpoint"
    settings = [*QUICK, "--epochs", "150"]
    command = [sys.executable, "-m", "xsoftmax", "embed", str(text), "-o", str(resumed), *settings]
    command += ["--checkpoint", str(checkpoint), "--checkpoint-seconds", "0.05"]
    for number, status in ((signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        running = subprocess.Popen(command, stderr=subprocess.PIPE)
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while running.poll() is None and not (checkpoint.exists() and checkpoint.stat().st_mtime_ns > before):
            time.sleep(0.005)
        running.send_signal(number)
        running.communicate()
        assert running.returncode == status
        assert checkpoint.exists()
        assert not resumed.exists()
    assert subprocess.run(command, check=False).returncode == 0
    assert not checkpoint.exists()
    assert embed(text, "-o", whole, *settings) == 0
    np.testing.assert_array_equal(read_word2vec(whole).vectors, read_word2vec(resumed).vectors)
    assert whole.read_bytes() == resumed.read_bytes()
