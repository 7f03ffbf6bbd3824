"""Small data sets, prepared from files written on the spot."""

from xsoftmax.data.config import DatasetConfig, Source, SplitOptions
from xsoftmax.data.download import download
from xsoftmax.data.prepare import prepare
from xsoftmax.data.store import open_prepared

TEXTS = ["The cat, the CAT!", "a dog", "dog and cat", "the bird 42", "", "bird dog"]
TABLE = "text,label\n" + "".join(f'"{text}",{i % 2}\n' for i, text in enumerate(TEXTS))


ALL_TRAIN = SplitOptions(validation=0, test=0)


def run(folder, contents, **settings):
    """Prepare from files written here; give the sizes and the path."""
    for name, content in contents.items():
        (folder / name).write_text(content)
    sources = tuple(Source(name=name, path=str(folder / name)) for name in contents)
    config = DatasetConfig(name="toy", files=sources, **{"format": "svmlight", "split": ALL_TRAIN, **settings})
    download(config, folder / "raw")
    return prepare(config, folder / "raw", folder / "toy.h5"), folder / "toy.h5"


def rows_of(path, split="train"):
    """Rows as (class name, features)."""
    with open_prepared(path) as data:
        found = data.split(split)
        X = found.X if not data.sparse else found.X.toarray()
        return [(data.class_names[k], row.tolist()) for k, row in zip(found.y, X, strict=True)]
