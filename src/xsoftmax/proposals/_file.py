"""A proposal that was fitted beforehand, as one HDF5 file: what it is, of which data, and how it was fitted."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xsoftmax.data.dataset import Dataset
from xsoftmax.data.names import Names
from xsoftmax.data.training_set import Size, TrainingSet, check_seed
from xsoftmax.internal import registry
from xsoftmax.internal.checksummed import opened, written_checksummed
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.hdf5 import attributes, put, put_text, text_of
from xsoftmax.internal.hdf5_checks import ContentError, check_number
from xsoftmax.proposals import Proposal, key_of, memory_of, parts_beforehand, settings_of
from xsoftmax.tree.engine import Engine

KIND = "proposal"
REMEDY = "fit one with `python -m xsoftmax proposal`"


@dataclass(frozen=True)
class StoredProposal:
    """What a file of a proposal holds.

    Attributes
    ----------
    proposal : Proposal
    settings : dict
        Its name and parameters, as in a config.
    attributes : dict
        ``dataset`` and its ``identity``, ``features_sha256`` of how features are made, ``n_classes``, ``n_features``,
        ``seed``, ``seconds`` of the fit, and versions.
    fit_summary : dict
        What its fit found, such as a ``train_log_likelihood``.
    class_names : sequence of str
    digest : str
        Of all that the file holds; empty before it is written.
    """

    proposal: Proposal
    settings: dict[str, Any]
    attributes: dict[str, Any]
    fit_summary: dict[str, Any]
    class_names: Sequence[str]
    digest: str = ""

    @property
    def key(self) -> str:
        """Tell it from proposals that are fitted differently, as ``key_of`` its parameters does."""
        return json.dumps(self.settings, sort_keys=True)


def fit_beforehand(
    data: Dataset,
    member: Any,
    seed: int = 0,
    progress: Callable[[float, float], None] | None = None,
    engine: Engine | None = None,
) -> StoredProposal:
    """Fit a proposal, given by its parameters, to the training rows of a data set.

    ``engine`` is the device that does so; None: compiled code does.

    Raises
    ------
    InputError
        If it is none that is fitted beforehand, or not by ``engine``, does not suit the data, or needs more memory
        than there is.
    """
    check_seed(seed)
    name = registry.name_of(member)
    if not member.beforehand:
        raise InputError(f"proposal {name} takes no time to fit, and fits do so themselves; leave --proposal out")
    if engine is not None and not member.on_device:
        raise InputError(f"proposal {name} is fitted on the host only; leave --device out")
    n_samples = data.n_samples("train")
    if not n_samples:
        raise InputError(f"{data.name} has no training rows; look at its preparation")
    size = Size(n_samples, data.n_classes, data.n_features, data.n_entries("train") / n_samples)
    held = 0 if data.in_memory else data.nbytes("train")
    check_free(held + sum(memory_of(member, size).values()), f"proposal {name} and the training rows of {data.name}")
    train = data.split("train")
    training_set = TrainingSet(
        train.X,
        train.y,
        data.n_classes,
        seed,
        progress=progress,
        label_sets=train.label_sets,
        engine=engine,
    )
    found = member.fit(training_set)
    known = {
        "dataset": data.name,
        "identity": data.identity,
        "features_sha256": data.transform.sha256,
        "n_classes": data.n_classes,
        "n_features": data.n_features,
        "seed": seed,
        "seconds": found.seconds,
    }
    fit_summary = dict(found.fit_summary(training_set)) if hasattr(found, "fit_summary") else {}
    return StoredProposal(found, settings_of(member), known, fit_summary, data.class_names)


def write_proposal(path: str | Path, stored: StoredProposal) -> None:
    """Write a file: aside, with a checksum, and renamed."""
    with written_checksummed(Path(path), KIND, libver="v110") as file:
        put(file, proposal=stored.settings["name"], **stored.attributes)
        put_text(file, "settings", stored.key)
        put(file.create_group("fit_summary"), **stored.fit_summary)
        stored.proposal.save(file.create_group("fitted"))
        Names.of(stored.class_names).to_group(file.create_group("classes/names"))


def read_proposal(path: str | Path) -> StoredProposal:
    """Read a file.

    Raises
    ------
    InputError
        If the file is missing or damaged, holds no proposal, or has another schema version.
    """
    path = Path(path)
    with opened(path, [KIND], REMEDY) as file:
        known, names = attributes(file), Names.from_group(file["classes/names"])
        settings = json.loads(text_of(file["settings"]))
        if not isinstance(settings, dict) or settings.get("name") != known["proposal"]:
            raise ContentError(f"settings of another proposal than {known['proposal']!r}")
        check_number(file, "n_classes", len(names))
        if not float(known["seconds"]) >= 0 or not isinstance(known["identity"], str):
            raise ContentError(f"a fit of {known['seconds']!r} seconds to data {known['identity']!r}")
        module = registry.load("xsoftmax.proposals", str(known["proposal"]))
        found = module.restore(file["fitted"], len(names), int(known["n_features"]))
        fit_summary = attributes(file["fit_summary"])
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return StoredProposal(found, settings, known | {"dataset": str(known["dataset"])}, fit_summary, names, digest)


def known_beforehand(
    stored: Mapping[str | Path, StoredProposal], member: Any, data: Dataset, share: float = 1.0
) -> dict[str, Any]:
    """Give the proposals that files hold, by what ``key_of`` says of the parts of a method's proposal that they are.

    Raises
    ------
    InputError
        If one is of other data, or of all training rows where a ``share`` of them is trained on, or no part of
        ``member``, the parameters of the method's proposal.
    """
    wanted = {key_of(part): settings_of(part) for part in parts_beforehand(member)}
    found = {}
    for path, each in stored.items():
        if share < 1:
            raise InputError(
                f"{path}: was fitted to all training rows, and a share of them is trained on; leave it out"
            )
        if each.attributes["identity"] != data.identity:
            raise InputError(
                f"{path}: a proposal that was fitted to other data, {each.attributes['dataset']} as it was prepared "
                f"then; {REMEDY} on {data.name}"
            )
        if each.key not in wanted:
            others = ", ".join(map(_in_words, wanted.values())) or "none that is fitted beforehand"
            raise InputError(
                f"{path}: holds proposal {_in_words(each.settings)}, and the method has {others}; give its own, or "
                "leave it out"
            )
        found[each.key] = each.proposal
    return found


def _in_words(settings: Mapping[str, Any]) -> str:
    parameters = ", ".join(f"{key} {value}" for key, value in settings.items() if key != "name")
    return f"{settings['name']} ({parameters})"
