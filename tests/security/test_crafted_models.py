"""Models of texts made by someone else, sealed as ours are: refused with a line that names the file."""

import json
import re
import shutil

import numpy as np
import pytest

from edited import edited
from xsoftmax.cli import main
from xsoftmax.data.names import Names
from xsoftmax.data.transform import Transform
from xsoftmax.internal.hdf5 import put_text
from xsoftmax.model import Model, save_model

SOURCE = {"format": "table", "options": {"text": "comment"}}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model.h5"
    transform = Transform("texts", words=("cat", "dog"), token=r"\w+", source=SOURCE)
    attributes = {"method": "m", "status": "finished", "message": ""}
    save_model(
        Model.of_rows(np.eye(2, 3, dtype=np.float32), ["a", "b"], 2, transform=transform, attributes=attributes), path
    )
    return path


def text(name, content):
    """A change of a text."""

    def change(file):
        del file[name]
        put_text(file, name, content if isinstance(content, str) else json.dumps(content))

    return change


def names(name, *content):
    """A change of names."""

    def change(file):
        del file[name]
        Names(content).to_group(file.create_group(name))

    return change


def without_weights(file):
    del file["W"]


CRAFTED = [
    (None, None),
    (text("transform/token", r"(\w)(\w+)"), "token: .* has groups"),
    (text("transform/token", "("), "token: not a regular expression"),
    (text("transform/token", "(?:a+)+b"), "token: .* a search may never end"),
    (names("transform/words", "cat", "cat"), "'cat' comes twice in words"),
    (text("transform/source", {"options": 7}), r"source: \"\{'options': 7\}\", expected a format and its options"),
    (text("transform/source", [1]), "source: "),
    (text("transform/source", SOURCE | {"options": {"delimiter": 7}}), "option delimiter: expected text"),
    (text("transform/source", SOURCE | {"options": {"text": [1]}}), "option text: expected text"),
    (names("class_names", "a", "a"), "two classes are named 'a'"),
    (without_weights, "no weights, though the fit is finished"),
]


@pytest.mark.parametrize(("change", "message"), CRAFTED)
def test_a_crafted_model_of_texts(change, message, model, tmp_path, capsys):
    crafted, rows = shutil.copy(model, tmp_path / "crafted.h5"), tmp_path / "new.csv"
    rows.write_text(f"comment\ncat\n{'a' * 40}\n")
    if change:
        with edited(crafted) as file:
            change(file)
    assert main(["predict", str(crafted), str(rows)]) == (1 if change else 0)
    said = capsys.readouterr().err
    if change:
        assert len(said.splitlines()) == 1
        assert said.startswith(f"error: {crafted}: ")
        assert "should not happen" not in said
        assert re.search(message, said)
