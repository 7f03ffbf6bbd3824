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
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import put_text
from xsoftmax.kernels.encoded import EncodedWeights
from xsoftmax.model import Model, load_model, save_model

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
    (text("transform/source", SOURCE | {"options": {"text": [[1]]}}), "option text: expected text"),
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


def behind_a_table(path):
    rows = EncodedWeights(np.eye(2, 4, dtype=np.float32), np.ones((5, 3), np.float32))
    save_model(Model.of_rows(rows, ["a", "b"], 5, attributes={"method": "m", "status": "finished"}), path)
    return path


def table(content):
    """A change of the table; of no content, there is none."""

    def change(file):
        del file["encoded/table"]
        if content is not None:
            file["encoded/table"] = content

    return change


def without_those_behind(file):
    del file["encoded/W"]


@pytest.mark.fault(
    "a model whose encoder has a crafted table",
    happens="it is refused as it is read",
    user="`error: …: a table of no columns, or with rows that are NaN or infinite …`",
)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (table(None), "weights behind an encoder's table, and no table"),
        (table(np.full((5, 3), np.nan, np.float32)), "with rows that are NaN or infinite"),
        (table(np.ones((5, 0), np.float32)), "a table of no columns"),
        (table(np.ones((4, 3), np.float32)), r"table: float32 of shape \(4, 3\), expected float32 of 5 x any"),
        (table(np.ones((5, 2), np.float32)), r"W: float32 of shape \(2, 3\), expected float32 of 2 x 2"),
        (table(np.ones((5, 3), np.float64)), "table: float64"),
        (table(np.ones(5, np.float32)), r"table: float32 of shape \(5,\)"),
        (without_those_behind, "no weights, though the fit is finished"),
    ],
)
def test_a_crafted_table_of_an_encoder(change, message, tmp_path):
    path = behind_a_table(tmp_path / "model.h5")
    assert np.array_equal(load_model(path).encoder, np.ones((5, 3)))
    with edited(path) as file:
        change(file)
    with pytest.raises(InputError, match=f"^{path}: .*{message}"):
        load_model(path)
