"""The description of a data set: one YAML file, checked before anything is done with it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from xsoftmax.data.encoding import word_pattern
from xsoftmax.data.typed_values import build, short
from xsoftmax.data.vocabulary import Cut
from xsoftmax.internal.documents import read_yaml
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import expanded
from xsoftmax.internal.shipped import description

NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
PROPENSITY = (0.55, 1.5)
SHA256 = re.compile("[0-9a-f]{64}")
Part = Literal["all", "train", "validation", "test"]
Expected = Literal[
    "rows", "labels", "train", "validation", "test", "features", "classes", "dropped_empty",
    "dropped_unlabelled", "dropped_unseen_validation", "dropped_unseen_test", "dropped_unseen_labels_validation",
    "dropped_unseen_labels_test", "dropped_unseen_filter_train", "dropped_unseen_filter_validation",
    "dropped_unseen_filter_test",
]  # fmt: skip


@dataclass(frozen=True)
class Archive:
    """How to unpack an archive, and how much may come out.

    Attributes
    ----------
    members : list of str
        Folders to unpack, found at any depth; all if there are none.
    max_bytes : int
        What may come out, at most.
    max_files : int
        How many files may, at most.
    """

    members: tuple[str, ...] = ()
    max_bytes: int = 4 * 2**30
    max_files: int = 2_000_000


@dataclass(frozen=True)
class Source:
    """One raw file: where it comes from and what it must be.

    Attributes
    ----------
    name : str
        What it is called here; otherwise the last part of its path or first address.
    urls : list of str
        Addresses, of which the next is tried where one fails.
    path : str
        A file or folder of your own, from the working folder or the folder of the description.
    mirror : str
        Where it lies below a mirror's address.
    sha256 : str
        Checksum, 64 hexadecimal digits: of an archive, of all files in it. Without it, that of the first download
        from the web is recorded, and enforced from then on.
    size : int
        Bytes: of an archive, of all files in it.
    of : str
        Whether checksum and size are of the ``content``, decompressed, or of the ``file`` as it is upstream.
    version : str
        Of a Python package that the file comes from.
    archive : Archive
        How to unpack it.
    """

    name: str = ""
    urls: tuple[str, ...] = ()
    path: str | None = None
    mirror: str | None = None
    sha256: str | None = None
    size: int | None = None
    of: Literal["content", "file"] = "content"
    version: str | None = None
    archive: Archive | None = None


@dataclass(frozen=True)
class TextOptions:
    """How texts become features: words, and which rows decide on the vocabulary.

    Attributes
    ----------
    token : str
        Regular expression of a word.
    analyzer : str
        What is counted: each ``word``, each character (``char``), or each character within words (``char_wb``).
    ngram_range : list of two int
        How many words or characters in a row are one feature, at least and at most: ``[1, 2]``, words and pairs.
    min_df : int
        Features that fewer rows have are left out.
    vocabulary : str
        Which rows decide on the features: ``train`` or ``all``.
    weighting : str
        What a feature is worth: ``tfidf``, its ``counts``, or 1 (``binary``).
    sublinear_tf : bool
        Take 1 + log(count) in place of a count.
    """

    token: str = r"\w+"
    analyzer: Literal["word", "char", "char_wb"] = "word"
    ngram_range: tuple[int, ...] = (1, 1)
    min_df: int = 2
    vocabulary: Literal["train", "all"] = "train"
    weighting: Literal["tfidf", "counts", "binary"] = "tfidf"
    sublinear_tf: bool = False

    @property
    def cut(self) -> Cut:
        """How a text is cut into words."""
        return Cut(self.token, self.analyzer, self.ngram_range)


@dataclass(frozen=True)
class SplitOptions:
    """What is split off of rows that all lie in one part.

    Attributes
    ----------
    validation, test : float
        A share below 1, otherwise a number of rows.
    seed : int
        Of the draw.
    keep_classes : bool
        One row of every class, drawn at random, always trains: for data where many classes have one row only.
    validation_of : str
        Take validation rows from given ``train`` rows; or from ``test`` rows, those of classes that are trained on.
    """

    validation: float = 0.1
    test: float = 0.1
    seed: int = 0
    keep_classes: bool = False
    validation_of: Literal["train", "test"] = "train"


@dataclass(frozen=True)
class DatasetConfig:
    """A data set, as its YAML file describes it: these are its keys.

    Attributes
    ----------
    name : str
        Also the name of its files; the YAML file should be called ``<name>.yaml``.
    like : str
        Another data set, whose file lies beside: keys that are not given are taken from there, but ``expect``.
    format : str
        The reader, a file in ``src/xsoftmax/data/readers``.
    title, description, homepage, licence, citation : str
        For readers of reports; nothing depends on it.
    files : list of Source
        What is downloaded, or lies here already.
    parts : mapping
        Which file plays which role of the reader in which part; the path inside an unpacked folder may follow
        its name. Needless for a single file, which is then split by us. Whatever the reader, ``filter`` is a file of
        pairs of a row and a label that never count.
    options : mapping
        What the reader takes besides files.
    labels : str
        Of several labels take the ``first`` in file order, or the one with the smallest id (``min``); or make a row
        for each (``pairs``); or keep one row with all of them (``sets``).
    propensity : list of two numbers
        Of a propensity model of the labels, A and B (Jain et al., KDD 2016, section 4): how many labels that are true
        are missing, by how many rows have them.
    text : TextOptions
        How texts become features.
    max_features : int
        Keep the first columns; of texts the most frequent words, of each column of texts as many.
    max_samples : int
        Keep the first rows of each part.
    normalize : str, mapping or list of these
        Steps in order, fitted on training rows: ``l2``, ``max``, ``column_max``, ``standardize``, ``{divide: c}``,
        ``{pca: k}``.
    split : SplitOptions
        What is split off by us, where it is not given.
    expect : mapping
        Sizes that must come out, by what is counted: ``rows``, ``train``, ``classes``, ``features`` and so on.
    folder : Path
        Where the YAML file lies; not a key.
    """

    name: str
    format: str
    title: str = ""
    description: str = ""
    homepage: str = ""
    licence: str = ""
    citation: str = ""
    files: tuple[Source, ...] = ()
    parts: dict[Part, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    labels: Literal["first", "min", "pairs", "sets"] = "first"
    propensity: tuple[float, ...] = PROPENSITY
    text: TextOptions = TextOptions()
    max_features: int | None = None
    max_samples: int | None = None
    normalize: Any = "none"
    split: SplitOptions = SplitOptions()
    expect: dict[Expected, int] = field(default_factory=dict)
    like: str = ""
    folder: Path = Path()

    @property
    def files_of(self) -> str:
        """Name the data set under which mirrors and recorded checksums have the files."""
        return self.like or self.name

    def local_path(self, source: Source) -> Path:
        """Find a file named by ``path``: from the working directory, otherwise from the config's folder."""
        path = expanded(source.path or "")
        return (path if path.exists() else self.folder / path).absolute()

    def local_files(self) -> list[Path]:
        """List the files of the user's own that it is made of; of folders all that is in them, in order."""
        found = []
        for source in self.files:
            path = self.local_path(source)
            if source.path and path.is_dir():
                found.extend(sorted(member for member in path.rglob("*") if member.is_file()))
            elif source.path:
                found.append(path)
        return found


def load_config(path: str | Path) -> DatasetConfig:
    """Read and check the description of a data set, given by its path or the name of one that is shipped.

    Raises
    ------
    InputError
        If the file is missing, not YAML, or a key is unknown, missing or of the wrong type.
    """
    path = description(path)
    content = _content(path, ())
    config: DatasetConfig = build(DatasetConfig, content, str(path), but="folder")
    return _checked(_with_names(config, path.parent), str(path))


def _content(path: Path, before: tuple[Path, ...]) -> dict[str, Any]:
    """Read the keys of a file and of those that it is like; ``before`` are the files that led here."""
    if not path.is_file():
        raise InputError(f"{path}: no such data set description")
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected keys such as 'name' and 'format', found {short(content)}")
    if "folder" in content:
        raise InputError(f"{path}: unknown key 'folder'")
    _check_labels(content, path)
    if "like" not in content:
        return content
    like = content["like"]
    if not isinstance(like, str) or path in before:
        raise InputError(f"{path}: like: expected the name of another data set, found {short(like)}")
    base = {"like": like} | _content(path.parent / f"{like}.yaml", (*before, path))
    whose = "" if "files" in content else base["like"]
    return {key: value for key, value in base.items() if key != "expect"} | content | {"like": whose}


def _check_labels(content: Mapping[str, Any], path: Path) -> None:
    """Say what to write where a file has the word of old."""
    old = {name: value for name, value in content.items() if name == "label" or (name, value) == ("labels", "all")}
    for name, value in old.items():
        line = f"{path}: '{name}: {short(value).strip(chr(39))}'"
        if value == "all":
            raise InputError(
                f"{line} may mean two things; write 'labels: pairs' (a row for each label), as it was, or "
                "'labels: sets' (one row with several labels)"
            )
        raise InputError(f"{line}: the key is 'labels' now; write 'labels: {value if value == 'min' else 'first'}'")


def _with_names(config: DatasetConfig, folder: Path) -> DatasetConfig:
    """Fill in what a file without a name is called: the last part of its path or first address."""
    files = tuple(_named(source) for source in config.files)
    return replace(config, files=files, folder=folder)


def _named(source: Source) -> Source:
    """A query of an address is no part of the name: it may be a token, and names are printed and stored."""
    origin = source.path or re.split("[?#]", source.urls[0] if source.urls else "")[0]
    return source if source.name else replace(source, name=origin.rstrip("/").rsplit("/", 1)[-1])


def _checked(config: DatasetConfig, where: str) -> DatasetConfig:
    """Check what one key alone cannot tell."""
    if not NAME.fullmatch(config.name):
        raise InputError(f"{where}: name {config.name!r} is part of paths: use lower case, digits and hyphens")
    names = [source.name for source in config.files]
    for number, source in enumerate(config.files):
        if not source.name or "/" in source.name or source.name.startswith("."):
            raise InputError(f"{where}: files[{number}] needs a plain file name, an address or a path")
        if source.path is None and not source.urls and source.mirror is None:
            raise InputError(f"{where}: files[{number}] ({source.name}) needs 'urls', 'path' or 'mirror'")
        if source.path is not None and (odd := _of_downloads(source)):
            raise InputError(
                f"{where}: files[{number}].{odd} is about downloads, which a file of your own is not: leave it out; "
                "sha256 says what the file must be"
            )
        if source.sha256 is not None and not SHA256.fullmatch(source.sha256):
            raise InputError(f"{where}: files[{number}].sha256: expected 64 hexadecimal digits in lower case")
        if names.count(source.name) > 1:
            raise InputError(f"{where}: two files are named {source.name!r}; give one another name")
    _check_text(config.text, where)
    if len(config.propensity) != 2 or not all(config.propensity):
        found = list(config.propensity)
        raise InputError(f"{where}: propensity: expected two numbers above 0, such as [0.55, 1.5], found {found}")
    for key in ("max_features", "max_samples"):
        if getattr(config, key) == 0:
            raise InputError(f"{where}: {key}: 0 keeps nothing; leave it out to keep all")
    for part, roles in config.parts.items():
        files = roles.values() if isinstance(roles, dict) else [roles or ""]
        if not all(isinstance(file, str) for file in files):
            raise InputError(f"{where}: parts.{part}: expected a file, or files by role, found {short(roles)}")
    if "all" in config.parts and len(config.parts) > 1:
        raise InputError(f"{where}: parts: 'all' is split by us; it cannot stand beside {_others(config)}")
    if config.parts and not {"all", "train"} & set(config.parts):
        raise InputError(f"{where}: parts: neither 'all' nor 'train' is given")
    return config


def _check_text(text: TextOptions, where: str) -> None:
    word_pattern(text.token, f"{where}: text.token", groups=1)
    if text.cut.problem:
        raise InputError(f"{where}: text.ngram_range is {text.cut.problem}")
    if text.analyzer != "word" and text.token != TextOptions().token:
        raise InputError(f"{where}: text.token says what a word is, and analyzer is {text.analyzer}; leave it out")
    if text.sublinear_tf and text.weighting == "binary":
        raise InputError(f"{where}: text.sublinear_tf is of counts, and weighting is binary; leave one of them out")


def _of_downloads(source: Source) -> str | None:
    """Name a key that would not be looked at of a file named by ``path``."""
    keys = ("urls", "mirror", "size", "of", "version", "archive")
    default = Source()
    return next((key for key in keys if getattr(source, key) != getattr(default, key)), None)


def _others(config: DatasetConfig) -> str:
    return ", ".join(part for part in config.parts if part != "all")
