"""The example of docs/adding-a-reader.md: a reader is one file."""

import json

import numpy as np
import pytest

from pages import Page, ended, run

PAGE = Page("adding-a-reader.md")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return PAGE.scratch(tmp_path_factory.mktemp("adding"))


def line(rng):
    k = int(rng.integers(3))
    return {"features": {"abc"[k]: 1 + rng.random(), "d": 0.1 * rng.random()}, "label": ("red", "green", "blue")[k]}


def test_it_is_prepared_trained_with_and_predicts(scratch):
    rng = np.random.default_rng(0)
    (scratch / "colours.jsonl").write_text("\n".join(json.dumps(line(rng)) for _ in range(300)))
    (scratch / "mine.yaml").rename(scratch / "colours.yaml")
    run(scratch, "xsoftmax", "download", scratch / "colours.yaml", "-o", scratch / "raw")
    prepared = scratch / "colours.h5"
    run(scratch, "xsoftmax", "prepare", scratch / "colours.yaml", "--raw", scratch / "raw", "-o", prepared)
    fit = scratch / "fit"
    run(scratch, "xsoftmax", "train", prepared, "--method", "softmax", "--epochs", 20, "-o", fit)
    assert json.loads(run(scratch, "xsoftmax", "evaluate", fit / "model.h5", prepared))["test"]["accuracy"] > 0.95
    (scratch / "new.jsonl").write_text('{"features": {"b": 1.5, "unknown": 3}}\n')
    assert "green" in run(scratch, "xsoftmax", "predict", fit / "model.h5", scratch / "new.jsonl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON"),
        ('{"label": "a"}', "line 1: no 'features', an object of names and numbers"),
        ('{"features": {"a": "b"}, "label": "a"}', "line 1: a is 'b'; write it as a number"),
        ('{"features": {"a": NaN}, "label": "a"}', "line 1: a is nan; write it as a number"),
        ('{"features": {"a": 1}}', "line 1: label is None; write it as a text"),
        ("", "no row in it"),
    ],
)
def test_errors_name_the_line(text, message, scratch, tmp_path):
    (tmp_path / "wrong.jsonl").write_text(text)
    (tmp_path / "wrong.yaml").write_text("name: wrong\nformat: json-lines\nfiles: [{path: wrong.jsonl}]\n")
    run(scratch, "xsoftmax", "download", tmp_path / "wrong.yaml", "-o", tmp_path / "raw")
    done = ended(
        scratch,
        "xsoftmax",
        "prepare",
        tmp_path / "wrong.yaml",
        "--raw",
        tmp_path / "raw",
        "-o",
        tmp_path / "wrong.h5",
    )
    assert done.returncode == 1
    assert message in done.stderr
