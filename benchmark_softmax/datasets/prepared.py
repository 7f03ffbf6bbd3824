"""Data sets of ``config/datasets/``, as the project's own readers prepare them."""

import os

from benchopt import BaseDataset
from benchopt.config import get_data_path

from xsoftmax.data.config import load_config
from xsoftmax.data.dataset import SPLITS, check_plain
from xsoftmax.data.download import download
from xsoftmax.data.prepare import prepare
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError


class Dataset(BaseDataset):
    """Rows of one label each; ``dataset`` is a description of ``config/datasets/``, by name, or another's path."""

    name = "prepared"
    parameters = {"dataset": ["digits", "icd10"]}
    test_parameters = {"dataset": ["digits"]}
    requirements = []
    prepare_cache_ignore = ("base_seed",)

    def prepare(self):
        """Download and prepare what is not there; ``XSOFTMAX_MIRROR`` is tried first."""
        config = load_config(self.dataset)
        path = get_data_path() / "prepared" / f"{config.name}.h5"
        if not path.exists():
            raw = get_data_path() / "raw" / config.name
            download(config, raw, os.environ.get("XSOFTMAX_MIRROR"))
            path.parent.mkdir(parents=True, exist_ok=True)
            prepare(config, raw, path)
        return path

    def get_data(self):
        """Read all rows; the splits are those of the description. What cannot be had, the objective skips."""
        try:
            data = open_prepared(self.prepare())
            check_plain(data, "this benchmark takes no")
        except InputError as error:
            return {"refused": str(error)}
        splits = {name: data.split(name) for name in SPLITS}
        rows = {f"X_{name}": split.X for name, split in splits.items()}
        return {"n_classes": data.n_classes, **rows} | {f"y_{name}": split.y for name, split in splits.items()}
