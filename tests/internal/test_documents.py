"""YAML and JSON of someone else's: plain values, or an error that names the place."""

import pytest

from xsoftmax.internal.documents import parse_json, parse_yaml, read_json, read_yaml
from xsoftmax.internal.errors import InputError

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_what_is_there_is_read(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfname: Zo\xc3\xab\nsame: &x [1, 2]\nagain: *x\n")
    assert read_yaml(str(tmp_path / "a.yaml")) == {"name": "Zoë", "same": [1, 2], "again": [1, 2]}
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": [1, null]}')
    assert read_json(tmp_path / "a.json") == {"a": [1, None]}


@pytest.mark.fault(
    "YAML or JSON nested 3,000 deep, with references that grow tenfold a line, or the same key twice",
    happens="it is refused before anything of it is used",
    user="`error: …: nested too deeply; make it flatter`, or what else is wrong",
)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 3000 + "]" * 3000, "nested too deeply; make it flatter"),
        ("a:\n" + "".join(" " * (k + 1) + "a:\n" for k in range(3000)), "nested too deeply"),
        (BOMB, "more than 1000000 values once its references are written out"),
        ("a: &a [*a]", "more than 1000000 values"),
        ("a: 1\nb: 2\na: 3\n", "the key 'a' comes twice"),
        ("a: {b: 1, b: 2}\n", "the key 'b' comes twice"),
        ("a: [1", "is not YAML: while parsing a flow sequence"),
        ("a: 2026-99-99", "is not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "is not YAML: could not determine a constructor"),
        ("a: \0", "is not YAML"),
        ("a: 1\nb: {yes: 1}\n", "the key yes is read as no text; write it as 'yes'"),
        ("5: {a: 1}\n", "line 1: the key 5 is read as no text"),
        ("a:\n  null: 1\n", "line 2: the key null is read as no text"),
        ("a: 1" + "0" * 400, "line 1: a whole number too large for any setting"),
        ("a: 0x" + "f" * 5000, "a whole number too large for any setting"),
    ],
)
def test_yaml_that_is_refused(text, reason, tmp_path):
    with pytest.raises(InputError, match="^here(: | |, ).*" + reason if "YAML" not in reason else "^here " + reason):
        parse_yaml(text, "here")
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=r"a\.yaml"):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply; make it flatter"),
        ("{", "here is not JSON: "),
        ('{"a": {"b": 1, "b": 2}}', "here is not JSON: the key 'b' comes twice"),
        ("9" * 10_000, "here is not JSON: Exceeds the limit"),
        ('{"a": -1' + "0" * 400 + "}", "here is not JSON: .* a whole number too large for any setting"),
    ],
)
def test_json_that_is_refused(text, reason):
    with pytest.raises(InputError, match=reason):
        parse_json(text, "here")


def test_files_that_are_no_text(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(InputError, match=r"a\.yaml, line 2: not utf-8 \(invalid start byte\); save it as utf-8"):
        read_yaml(tmp_path / "a.yaml")
    with pytest.raises(InputError, match=r"none\.json: no such file"):
        read_json(tmp_path / "none.json")


def test_keys_may_be_quoted_and_merged():
    assert parse_yaml("base: &b {'yes': 1, '5': 2}\nown: {<<: *b, x: 3}\n", "here")["own"] == {
        "yes": 1,
        "5": 2,
        "x": 3,
    }


def test_a_device_is_no_document():
    with pytest.raises(InputError, match="/dev/zero: a device"):
        read_yaml("/dev/zero")
