"""No verb replaces what it reads."""

import os

import pytest

from xsoftmax.cli import main
from xsoftmax.internal.errors import InputError
from xsoftmax.training.checkpoint import check_checkpoint, write_checkpoint


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files of every kind, as the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("fit/model.h5", "fit/status.json", "raw/a.csv", "raw/receipt.json", "trials/a/history.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    for name in ("rows.csv", "data.h5", "mine.yaml", "grid.json", "results.json"):
        (tmp_path / name).write_text(name)
    (tmp_path / "mine.yaml").write_text("name: mine\nformat: table\nfiles: [{path: rows.csv}]\n")
    (tmp_path / "link.h5").symlink_to("fit/model.h5")
    os.link(tmp_path / "rows.csv", tmp_path / "hard.csv")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "summary.csv").symlink_to("../fit/status.json")
    return tmp_path


TRAIN = "train data.h5 --method m --epochs 1"


@pytest.mark.fault(
    "an output or a checkpoint that is also what the same verb reads, by whatever name or link",
    happens="it is refused before anything is read",
    user="`error: -o … is also what is read, and would be lost; name another`",
)
@pytest.mark.parametrize(
    "words",
    [
        "predict fit/model.h5 rows.csv -o fit/model.h5",
        "predict fit/model.h5 rows.csv -o link.h5",
        "predict fit/model.h5 rows.csv -o hard.csv",
        "evaluate fit/model.h5 data.h5 -o data.h5",
        "evaluate fit/model.h5 data.h5 --reference link.h5 -o ./fit/model.h5",
        "proposal data.h5 --kind tree -o data.h5",
        "snr data.h5 -o new.csv --figure data.h5",
        "prepare mine.yaml --raw raw -o mine.yaml",
        "prepare mine.yaml --raw raw -o raw/receipt.json",
        "prepare mine.yaml --raw raw -o rows.csv",
        "track fit --experiment e -o fit/status.json",
        "compare fit -o linked",
        "choose trials --grid {} -o trials/a/history.csv",
        "report raw --config mine.yaml -o mine.yaml",
        f"{TRAIN} --proposal fit/model.h5 -o fit",
        f"{TRAIN} --proposal link.h5 --checkpoint fit/model.h5 -o new",
        f"{TRAIN} --checkpoint data.h5 -o new",
    ],
)
def test_what_is_read_is_not_replaced(words, folder, capsys):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(words.split()) == 1
    said = capsys.readouterr().err
    assert "is also what is read" in said
    assert said.count("\n") == 1
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_checkpoint_in_the_place_of_the_model(folder, capsys):
    assert main(f"{TRAIN} --checkpoint new/model.h5 -o new".split()) == 1
    assert "-o and --checkpoint both write new/model.h5" in capsys.readouterr().err


def test_a_file_of_words_is_read_too(folder, capsys):
    (folder / "grid.json").write_text("{}")
    assert main(["choose", "trials", "--grid", "@grid.json", "-o", "grid.json"]) == 1
    assert "is also what is read" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["new/", "."])
def test_a_file_is_not_named_by_a_slash_or_a_folder(folder, capsys, name):
    with pytest.raises(SystemExit):
        main(["evaluate", "fit/model.h5", "data.h5", "-o", name])
    assert f"{name} names a folder; name a file" in capsys.readouterr().err


@pytest.mark.fault(
    "a file that is no checkpoint where `--checkpoint` says",
    happens="it is refused before anything is read, and stays",
    user="`error: …: is no checkpoint, and would be replaced; name another file for --checkpoint`",
)
def test_a_file_that_is_no_checkpoint_stays(folder, capsys):
    assert main(f"{TRAIN} --checkpoint rows.csv -o new".split()) == 1
    assert "rows.csv: is no checkpoint, and would be replaced" in capsys.readouterr().err
    assert (folder / "rows.csv").read_text() == "rows.csv"


def test_prepared_data_and_folders_are_no_checkpoint(prepare, tmp_path):
    with pytest.raises(InputError, match="is no checkpoint"):
        check_checkpoint(prepare([[1.0], [2.0]], [0, 1], 2))
    with pytest.raises(InputError, match="is no regular file"):
        check_checkpoint(tmp_path)


def test_what_is_left_of_a_checkpoint_may_be_replaced(tmp_path):
    path = tmp_path / "kept.h5"
    write_checkpoint(path, "me", {}, {})
    whole = path.read_bytes()
    for length in range(0, len(whole), 13):
        path.write_bytes(whole[:length])
        check_checkpoint(path)
    for at in range(0, min(4096, len(whole)), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        check_checkpoint(path)
