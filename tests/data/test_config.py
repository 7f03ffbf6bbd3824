from pathlib import Path

import pytest

from xsoftmax.data.config import DatasetConfig, Source, load_config
from xsoftmax.data.download import download
from xsoftmax.data.normalization import parse
from xsoftmax.data.recorded import needs_record
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "config/datasets").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_descriptions_are_valid(path):
    config = load_config(path)
    assert config.name == path.stem
    assert config.licence
    assert config.expect
    assert config.format in registry.names("xsoftmax.data.readers")
    assert all((source.sha256 and source.size) or source.path or needs_record(source) for source in config.files)
    parse(config.normalize)


BAD = [
    ("", "expected keys such as 'name' and 'format', found None"),
    ("name: [", "not YAML"),
    ("name: a", "key 'format' is missing"),
    ("name: a\nformat: xc\nlable: first", "unknown key 'lable'; .*did you mean 'labels'"),
    ("name: a\nformat: xc\nfolder: x", "unknown key 'folder'"),
    ("name: a\nformat: xc\nlabels: last", "labels: 'last' is not one of first, min, pairs, sets"),
    ("name: a\nformat: xc\nlabel: first", "'label: first': the key is 'labels' now; write 'labels: first'"),
    ("name: a\nformat: xc\nlabel: min", "'label: min': the key is 'labels' now; write 'labels: min'"),
    (
        "name: a\nformat: xc\nlabel: all",
        "'label: all' may mean two .* 'labels: pairs' .* as it was, or 'labels: sets'",
    ),
    ("name: a\nformat: xc\npropensity: [0.5]", r"propensity: expected two numbers above 0, such as .*found \[0.5\]"),
    ("name: a\nformat: xc\npropensity: [0.5, 0.4, 1]", "propensity: expected two numbers above 0"),
    ("name: a\nformat: xc\npropensity: [0.5, 0]", r"propensity: expected two numbers above 0.*found \[0.5, 0\]"),
    ("name: a\nformat: xc\npropensity: [0.5, -1]", r"propensity\[1\]: -1 is negative"),
    ("name: a\nformat: xc\npropensity: [0.5, .inf]", r"propensity\[1\]: inf is no finite number"),
    ("name: a\nformat: xc\npropensity: 0.5", "propensity: expected a list, found 0.5"),
    ("name: a\nformat: xc\nlabels: all", "'labels: all' may mean two .* 'labels: pairs' .* or 'labels: sets'"),
    ("name: a\nformat: xc\nlabel: [1]", "the key is 'labels' now; write 'labels: first'"),
    ("name: A b\nformat: xc", "name 'A b' is part of paths"),
    ("name: a\nformat: xc\nsplit: {test: x}", "split.test: expected a number, found 'x'"),
    ("name: a\nformat: xc\nsplit: {test: -1}", "split.test: -1 is negative"),
    ("name: a\nformat: xc\nsplit: 3", "split: expected keys and values, found 3"),
    ("name: a\nformat: xc\nexpect: {row: 3}", "unknown key 'expect.row'; .*did you mean 'rows'"),
    ("name: a\nformat: xc\nexpect: {rows: true}", "expect.rows: expected a whole number, found True"),
    ("name: a\nformat: xc\nfiles: {path: x}", "files: expected a list"),
    ("name: a\nformat: xc\nfiles: [{pth: x}]", r"unknown key 'files\[0\].pth'; .*did you mean 'path'"),
    ("name: a\nformat: xc\nfiles: [{name: x}]", r"files\[0\] \(x\) needs 'urls', 'path' or 'mirror'"),
    ("name: a\nformat: xc\nfiles: [{sha256: x}]", r"files\[0\] needs a plain file name"),
    ("name: a\nformat: xc\nfiles: [{path: b/x}, {path: c/x}]", "two files are named 'x'"),
    (
        "name: a\nformat: xc\nfiles: [{urls: ['https://h/x'], sha256: 3}]",
        r"files\[0\].sha256: expected text, found 3",
    ),
    ("name: a\nformat: xc\nfiles: [{path: x, sha256: abc}]", r"files\[0\].sha256: expected 64 hexadecimal digits"),
    ("name: a\nformat: xc\nfiles: [{path: x, size: 3}]", r"files\[0\].size is about downloads"),
    ("name: a\nformat: xc\nfiles: [{path: x, archive: {}}]", r"files\[0\].archive is about downloads"),
    ("name: a\nformat: xc\nfiles: [{path: x, urls: ['https://h/x']}]", r"files\[0\].urls is about downloads"),
    ("name: a\nformat: xc\nmax_features: 0", "max_features: 0 keeps nothing"),
    ("name: a\nformat: xc\nmax_samples: 0", "max_samples: 0 keeps nothing"),
    ("name: a\nformat: xc\nparts: {train: 3}", "parts.train: expected a file, or files by role, found 3"),
    ("name: a\nformat: xc\nparts: {train: {data: 3}}", "parts.train: expected a file, or files by role"),
    ("name: a\nformat: xc\nparts: {tran: x}", "unknown key 'parts.tran'; .*did you mean 'train'"),
    ("name: a\nformat: xc\nparts: {test: x}", "neither 'all' nor 'train'"),
    ("name: a\nformat: xc\nparts: {all: x, test: y}", "'all' is split by us; it cannot stand beside test"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_errors_name_the_key(tmp_path, content, message):
    path = tmp_path / "a.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as raised:
        load_config(path)
    assert str(path) in str(raised.value)


def test_a_missing_description(tmp_path):
    with pytest.raises(InputError, match="no such data set description"):
        load_config(tmp_path / "none.yaml")


def test_local_files_are_those_in_folders_too(tmp_path):
    for name in ("texts/b/2", "texts/b/1", "texts/a/3", "rows.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    files = "[{path: texts}, {path: rows.csv}, {path: none.csv}, {urls: ['https://h/x']}]"
    (tmp_path / "a.yaml").write_text(f"name: a\nformat: folders\nfiles: {files}\n")
    names = ["texts/a/3", "texts/b/1", "texts/b/2", "rows.csv", "none.csv"]
    assert load_config(tmp_path / "a.yaml").local_files() == [tmp_path / name for name in names]


def write(folder, name, content):
    (folder / f"{name}.yaml").write_text(f"name: {name}\n{content}")
    return folder / f"{name}.yaml"


def test_a_data_set_like_another_takes_what_it_does_not_say(tmp_path):
    write(
        tmp_path, "a", "format: xc\nlicence: free\nfiles: [{urls: ['https://h/x']}]\nnormalize: l2\nexpect: {rows: 3}"
    )
    write(tmp_path, "b", "like: a\nnormalize: none")
    found = load_config(write(tmp_path, "c", "like: b\nsplit: {validation: 0}"))
    assert (found.name, found.like, found.files_of) == ("c", "a", "a")
    assert (found.licence, found.normalize, found.split.validation, found.expect) == ("free", "none", 0, {})
    assert found.files == load_config(tmp_path / "a.yaml").files
    own = load_config(write(tmp_path, "d", "like: a\nfiles: [{urls: ['https://h/y']}]"))
    assert own.files_of == "d"


def test_what_a_data_set_is_like_must_be_there_and_not_like_itself(tmp_path):
    with pytest.raises(InputError, match=r"none\.yaml: no such data set description"):
        load_config(write(tmp_path, "a", "like: none"))
    write(tmp_path, "a", "like: b")
    with pytest.raises(InputError, match="like: expected the name of another data set"):
        load_config(write(tmp_path, "b", "like: a"))
    with pytest.raises(InputError, match="found 3"):
        load_config(write(tmp_path, "c", "like: 3"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("~nobodyx/r.csv", "~nobodyx/r.csv: no such user's folder"),
        ("/dev/zero", "/dev/zero is neither a file nor a fo"),
    ],
)
def test_files_of_ones_own_that_are_none(path, message, tmp_path):
    with pytest.raises(InputError, match=message):
        download(DatasetConfig("a", "table", files=(Source(name="r.csv", path=path),)), tmp_path / "raw")
