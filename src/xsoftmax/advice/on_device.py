"""Exact softmax on a card, as further candidates: what an epoch costs there by the card's rates.

Per sample an epoch takes 3 K D / products, a share of the time that a step takes at least, and what moving the
weights takes: these are coefficients of ``costs.terms``. Epochs to a quality are those of the same method in compiled
code, which was too slow to show them where classes are many; so they are at most those of sampled softmax with as
large a minibatch, whose gradient only adds noise. The rates come from the file that ``benchmark gpu --json`` writes;
without one they are assumed, and the sentence says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from xsoftmax.advice.learned import Learned
from xsoftmax.advice.model import CostModel, Costs
from xsoftmax.gpu.device import NUMBA, place_of, require_for
from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import Method, build_method
from xsoftmax.solvers import solver_of
from xsoftmax.solvers._rules import is_softmax
from xsoftmax.solvers.torch_full import PRODUCTS_A_SECOND

# What nobody measured: of a card of 2022, and of PyTorch's calls to it.
ASSUMED = {"products": PRODUCTS_A_SECOND, "bandwidth": 1e12, "step_seconds": 1e-3}
# Bytes per weight of a step: it and its accumulator, read and written. Bytes per product of sparse rows: gathered,
# multiplied and added, three times over.
MOVED, GATHERED = 16, 36
# Seconds of a small step of which a card is asked each operation: docs/gpu/h200-not-recorded.json.
NOT_RECORDED = 2e-3


class Rates(NamedTuple):
    """What a device does: products added up, and bytes moved, in a second; seconds that a step takes at least.

    ``origin`` says for a sentence where they come from.
    """

    products: float
    bandwidth: float
    step_seconds: float
    origin: str


def rates_of(path: str | Path | None) -> Rates:
    """Read rates from the file that ``benchmark gpu --json`` wrote, or assume some.

    Raises
    ------
    InputError
        If it holds none, or rates that are not above 0.
    """
    if path is None:
        return Rates(**ASSUMED, origin="by assumed rates of a card, as none were given (see rates)")
    found = read_json(Path(path))
    rates = found.get("rates") if isinstance(found, Mapping) else None
    if not isinstance(rates, Mapping) or not set(ASSUMED) <= set(rates):
        raise InputError(f"{path}: no rates; give the file that `xsoftmax benchmark gpu --json` wrote")
    for name in ASSUMED:
        if isinstance(rates[name], bool) or not isinstance(rates[name], int | float) or not 0 < rates[name] < 1e30:
            raise InputError(
                f"{path}: {name} is {rates[name]!r}; measure again, with `xsoftmax benchmark gpu --json`"
            )
    name = str(found.get("device", {}).get("name", "a device"))[:80]
    products, bandwidth, step = (float(rates[key]) for key in ASSUMED)
    return Rates(products, bandwidth, step, f"by rates measured on {name}")


def with_device(model: CostModel, device: str, rates: str | None = None) -> CostModel:
    """Add exact softmax on a device to the candidates, if there is such a device.

    Parameters
    ----------
    model : CostModel
    device : {"numba", "cpu", "cuda", "auto"}
        With auto, a card where there is one.
    rates : str, optional
        File of rates.

    Raises
    ------
    InputError
        If the device is not there, or the file has no rates, or is given without a device.
    """
    place = place_of(device)
    if rates is not None and device == NUMBA:
        raise InputError(f"auto: rates are {rates}, and no device is named that has any; add device: auto")
    require_for(f"auto: device is {device}", place, "trains")
    return model if place == NUMBA else counted(model, place, rates_of(rates))


def counted(model: CostModel, place: str, rates: Rates) -> CostModel:
    """Add exact softmax at a place to the candidates, by its rates."""
    exact = [name for name in model.candidates if is_softmax(model.method(name))]
    names = {name: on(name, place) for name in exact}
    noisier = {name: _noisier(model, name) for name in exact}
    candidates = {there: {**model.candidates[name], "device": place} for name, there in names.items()}
    costs = {there: costs_of(rates, place) for there in names.values()}
    return replace(
        model,
        candidates={**model.candidates, **candidates},
        costs={**model.costs, **costs},
        experience=[_also(each, names, noisier) for each in model.experience],
        origins={**model.origins, **dict.fromkeys(names.values(), rates.origin)},
    )


def costs_of(rates: Rates, place: str) -> Costs:
    """Give the coefficients of ``costs.terms`` of exact softmax, dense and sparse; threads change nothing."""
    least = NOT_RECORDED if place == "cuda" else 0.0
    step, moved = rates.step_seconds, MOVED / rates.bandwidth
    dense = [0.0, step, 0.0, 3 / rates.products, moved, 0.0]
    sparse = [0.0, max(step, least), 0.0, GATHERED / rates.bandwidth, moved, 0.0]
    return Costs(dense, sparse, 0.0)


def on(name: str, place: str) -> str:
    """Name a candidate at a place."""
    return f"{name}-on-{place}"


def base_of(name: str) -> str:
    """Name the candidate that one at a place is like."""
    return name.partition("-on-")[0]


def also_named(among: Sequence[str] | None, model: CostModel, place: str) -> tuple[str, ...] | None:
    """Add to named candidates the same ones at a place, where the model has them."""
    if among is None:
        return None
    return (*among, *(there for name in among if (there := on(name, place)) in model.candidates))


def contenders_on(others: Mapping[str, Mapping[str, Any]], place: str) -> dict[str, Mapping[str, Any]]:
    """Give those contenders of a race that look at all classes and train at a place, to train there."""
    there = {on(name, place): {**settings, "device": place} for name, settings in others.items()}
    return {name: settings for name, settings in there.items() if _trains(name, settings)}


def _trains(name: str, settings: Mapping[str, Any]) -> bool:
    try:
        method: Method = build_method(name, settings)
        solver_of(method)
    except InputError:
        return False
    return not method.proposal.draws


def _noisier(model: CostModel, name: str) -> list[str]:
    """Name the candidates whose gradients are exact softmax's but for noise, and whose minibatches are as large."""
    methods = {other: model.method(other) for other in model.candidates}
    sampled = [other for other, each in methods.items() if each.settings["objective"]["name"] == "sampled-softmax"]
    return [other for other in sampled if methods[other].minibatch_size >= methods[name].minibatch_size]


def _also(learned: Learned, names: Mapping[str, str], noisier: Mapping[str, Sequence[str]]) -> Learned:
    """Give what is known of methods to the same ones at another place."""
    known: list[Any] = [learned.rates, learned.measured]
    more = [{**each, **{there: each[name] for name, there in names.items() if name in each}} for each in known]
    epochs = dict(learned.epochs)
    for name, there in names.items():
        if name in epochs:
            as_good = [learned.epochs[other] for other in (name, *noisier[name]) if other in learned.epochs]
            epochs[there] = [min(levels) for levels in zip(*as_good, strict=True)]
    return replace(learned, epochs=epochs, rates=more[0], measured=more[1])
