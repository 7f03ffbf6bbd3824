import lzma

import pytest

from data.toy import run
from xsoftmax.data.config import SplitOptions, TextOptions
from xsoftmax.data.readers import debian
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError

PACKAGES = """\
Package: 0ad
Version: 0.0.26-3
Depends: 0ad-data (>= 0.0.26), libc6 (>= 2.34)
Description: Real-time strategy game
Homepage: https://play0ad.com/
Description-md5: d943
Tag: game::strategy, interface::graphical,
 uitoolkit::sdl, role::program
Section: games

Package: 0ad-common
Source: 0ad-data (0.0.26-1)
Description: common data files
Description-md5: 8d01
Section: games

Package: 0ad-data
Description: data files
Description-md5: 2658
Section: libs

Package: zoé
Source: 0ad
Description: Short one: with a colon
Description-md5: ffff
Section: utils
"""
TRANSLATION = """\
Package: 0ad
Description-md5: d943
Description-en: Real-time strategy game
 0 A.D. is a free
 game.
 .
  * played: by many

Package: 0ad-data
Description-md5: old
Description-en: older data files
 Of another version.

Package: zoé
Description-md5: 2658
Description-en: data files of another package

Package: 0ad-data
Description-md5: 2658
Description-en: data files
 The données, long.
"""


def write(folder, packages=PACKAGES, translation=TRANSLATION):
    paths = {"packages": folder / "Packages.xz", "translation": folder / "Translation-en.xz"}
    for path, content in zip(paths.values(), (packages, translation), strict=True):
        path.write_bytes(lzma.compress(content.encode() if isinstance(content, str) else content))
    return paths


def labels_of(rows):
    return [rows.label_names[i] for i in rows.labels]


def test_texts_are_joined_by_package_and_checksum(tmp_path):
    rows = debian.read(**write(tmp_path))
    assert list(rows.features) == [
        "Real-time strategy game\n0 A.D. is a free\ngame.\n\n * played: by many",
        "common data files",
        "data files\nThe données, long.",
        "Short one: with a colon",
    ]
    assert rows.n_samples == len(rows.features) == 4


def test_labels_are_source_packages_or_sections(tmp_path):
    assert labels_of(debian.read(**write(tmp_path))) == ["0ad", "0ad-data", "0ad-data", "0ad"]
    assert labels_of(debian.read(**write(tmp_path), label="section")) == ["games", "games", "libs", "utils"]
    with pytest.raises(InputError, match="unknown label 'task'; known: source, section, tags"):
        debian.read(**write(tmp_path), label="task")


def test_labels_are_all_tags(tmp_path):
    packages = PACKAGES.replace("Description-md5: ffff\n", "Tag: role::program,x11::a:b\nDescription-md5: ffff\n")
    rows = debian.read(**write(tmp_path, packages), label="tags")
    names = ("game::strategy", "interface::graphical", "role::program", "uitoolkit::sdl", "x11::a:b")
    assert rows.label_names == names
    assert rows.label_starts.tolist() == [0, 4, 4, 4, 6]
    assert labels_of(rows) == [
        *("game::strategy", "interface::graphical", "uitoolkit::sdl"),
        *2 * ["role::program"],
        names[4],
    ]


@pytest.mark.fault("tags of a package that are none", "an error names the paragraph", subsystem="prepare")
@pytest.mark.parametrize("tag", ["a::b,", "a::b c", "a::{b,c}", "ab", "a::b,, c::d"])
def test_bad_tags_are_named(tmp_path, tag):
    paths = write(tmp_path, f"{GOOD}Package: a\nDescription: b\nTag: {tag}\n")
    with pytest.raises(
        InputError, match=r"Packages\.xz, paragraph 2: expected tags 'facet::tag'.*, found '.*'; fetch"
    ):
        debian.read(**paths, label="tags")


def test_blank_lines_and_line_ends_do_not_matter(tmp_path):
    expected = debian.read(**write(tmp_path))
    spread = PACKAGES.replace("\n\n", "\n\n \n\n").rstrip("\n")
    found = debian.read(**write(tmp_path, "\n\n" + spread.replace("\n", "\r\n")))
    assert list(found.features) == list(expected.features)
    assert labels_of(found) == labels_of(expected)


GOOD = "Package: a\nSection: x\nDescription: b\n\n"
BAD = {
    GOOD + " rest of nothing\n": r"paragraph 2: expected 'Name: value' .*, found ' rest of nothing'",
    GOOD + GOOD + "Package a\n": r"paragraph 3: expected 'Name: value' .*, found 'Package a'",
    GOOD + "Package: a\0b\n": r"paragraph 2: a NUL character, which is no text, in 'Package: a.x00b'",
    GOOD + ": a\n": r"paragraph 2: expected 'Name: value'",
    GOOD + "Section: x\nDescription: b\n": r"paragraph 2: no field 'Package'; fields: Section, Description",
    "Package: a\nSection: x\n": r"paragraph 1: no field 'Description'",
    GOOD + "Package: a\nSection: x\nPackage: b\n": r"paragraph 2: the field 'Package' comes twice",
    GOOD.encode() + b"Package: \xff\xfe\n": r"in or after paragraph \d: cannot read on \(.*utf-8",
    "\n": r": no paragraph in it; fetch it again",
}


@pytest.mark.parametrize("content", BAD)
def test_bad_paragraphs_are_named(tmp_path, content):
    with pytest.raises(InputError, match=BAD[content]) as raised:
        debian.read(**write(tmp_path, packages=content))
    assert str(raised.value).startswith(str(tmp_path / "Packages.xz"))


def test_what_is_missing_where(tmp_path):
    with pytest.raises(InputError, match=r"Translation-en\.xz, paragraph 1: no field 'Description-md5'"):
        debian.read(**write(tmp_path, translation="Package: a\nDescription-en: b\n"))
    no_section = write(tmp_path, "Package: a\nDescription: b\n")
    assert labels_of(debian.read(**no_section)) == ["a"]
    with pytest.raises(InputError, match=r"Packages\.xz, paragraph 1: no field 'Section'"):
        debian.read(**no_section, label="section")


def test_a_damaged_file_is_named(tmp_path):
    paths = write(tmp_path, GOOD * 3000)
    whole = paths["packages"].read_bytes()
    paths["packages"].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"Packages\.xz, in or after paragraph \d+: cannot read on"):
        debian.read(**paths)


def test_prepared_with_a_row_of_every_source_in_training(tmp_path):
    packages = "".join(
        f"Package: p{i}\nSource: s{i % 15 if i < 20 else i} (1:2-3)\nDescription: word{i % 3} other\nSection: a\n\n"
        for i in range(30)
    )
    contents = {"Packages": packages, "Translation-en": TRANSLATION}
    parts = {"all": {"packages": "Packages", "translation": "Translation-en"}}
    split = SplitOptions(validation=0.05, test=0.1, keep_classes=True)
    sizes, path = run(
        tmp_path, contents, format="debian", parts=parts, text=TextOptions(token="[a-z0-9]+"), split=split
    )
    assert [sizes[name] for name in ("train", "validation", "test", "classes")] == [25, 2, 3, 25]
    assert sizes["dropped_unseen_test"] == sizes["dropped_unseen_validation"] == 0
    with open_prepared(path) as data:
        assert data.class_names == sorted({f"s{i % 15 if i < 20 else i}" for i in range(30)})
        assert (data.class_counts > 0).all()
