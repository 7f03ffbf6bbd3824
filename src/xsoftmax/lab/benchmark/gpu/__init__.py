"""Measure a card: exact and sampled softmax on PyTorch, correctness first, then times against ceilings of this run.

It takes at most 8 minutes, and imports nothing that a machine with only Python, PyTorch, NumPy and SciPy lacks.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from xsoftmax.internal.errors import InputError, first_line

if TYPE_CHECKING:
    import torch

    from xsoftmax.gpu.elementwise import Elementwise

SECONDS = 420.0  # after which nothing more is begun: the longest part ends within the eighth minute


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument(
        "--device", default="cuda", help="such as cuda:1; on cpu, all sizes are reduced (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="of the inputs that are checked (default: from the clock)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Check, measure and print, a line when it is known, and the table last.

    Raises
    ------
    InputError
        If there is no such device, or a result is wrong: nothing is timed then.
    """
    from xsoftmax.gpu.fused_softmax import BYTES_OF_A_BLOCK
    from xsoftmax.gpu.same_bits import loaded_torch
    from xsoftmax.lab.benchmark.gpu import ceilings, exact, losses, rates, sampled, table
    from xsoftmax.lab.benchmark.gpu import ways as usable
    from xsoftmax.lab.benchmark.gpu.sizes import OF_A_CARD, OF_A_PROCESSOR

    started = time.monotonic()
    loaded_torch()
    device = _device(options.device)
    described = _described(device)
    print(f"{described['name']}; PyTorch {described['torch']}")
    sizes = OF_A_CARD if device.type == "cuda" else OF_A_PROCESSOR
    if device.type != "cuda":
        print("reduced sizes: this is no card, and its figures say nothing of one")
    ways = usable.ways(device)
    correctness = _checked(time.time_ns() % 2**31 if options.seed is None else options.seed, device, ways)
    training = {"way": usable.taken_of(ways), "block_bytes": BYTES_OF_A_BLOCK}
    found = {"device": described, "sizes": sizes._asdict(), "training": training, **correctness}
    found["ceilings"] = limits = ceilings.measured(sizes, device)
    parts: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
        "exact softmax": lambda: exact.measured(sizes, device, limits, ways),
        "negative sampling": lambda: sampled.measured(sizes, device, limits),
        "a large model": lambda: exact.large(sizes, device, ways),
        "losses": lambda: losses.measured(sizes, device, ways),
    }
    found["results"] = list(_within(started + SECONDS, parts))
    found["rates"] = rates.measured(sizes, device, limits, found["results"])
    if device.type != "cuda":  # targets are of a card, and of its sizes
        for each in found["results"]:
            each.pop("met", None)
    found["seconds"] = time.monotonic() - started
    print("\n".join(["", *table.lines(found)]))
    return found


def _within(end: float, parts: dict[str, Callable[[], Iterable[dict[str, Any]]]]) -> Iterator[dict[str, Any]]:
    """Measure parts one by one; of a part that time or memory is too short for, say that its rest is left out."""
    from torch import OutOfMemoryError

    for name, measured in parts.items():
        try:
            results = iter(measured())
            while time.monotonic() < end and (found := next(results, None)) is not None:
                print(f"measured: {found['part']}: {found['name']}", flush=True)
                yield found
        except OutOfMemoryError as error:
            yield {"part": name, "name": "the rest", "left_out": first_line(error)}
        if time.monotonic() >= end:
            yield {"part": name, "name": "the rest", "left_out": f"{SECONDS:.0f} seconds have passed"}


def _checked(seed: int, device: "torch.device", ways: "dict[str, Elementwise]") -> dict[str, Any]:
    from xsoftmax.lab.benchmark.gpu.correctness import checks

    found = list(checks(seed, device, ways))
    for each in found:
        verdict = "holds" if each["holds"] else "WRONG"
        print(f"{each['name']}: error {each['error']:.2g}, tolerance {each['tolerance']:.2g}: {verdict}")
    if wrong := [each["name"] for each in found if not each["holds"]]:
        raise InputError(
            f"wrong on this device, with --seed {seed}: {'; '.join(wrong)}; nothing was timed, report this"
        )
    return {"seed": seed, "correctness": found}


def _device(name: str) -> "torch.device":
    import torch

    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"--device is {name!r}; name cuda, cuda:1 or cpu") from error
    if device.type not in ("cuda", "cpu"):
        raise InputError(f"--device is {name!r}; name cuda, cuda:1 or cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"--device is {name!r}, and PyTorch {torch.__version__} finds {torch.cuda.device_count()} cards; "
            "install PyTorch for your card, or give --device cpu"
        )
    return device


def _described(device: "torch.device") -> dict[str, Any]:
    import torch

    versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "type": device.type}
    if device.type != "cuda":
        return {"name": "PyTorch's CPU device", "threads": torch.get_num_threads(), **versions}
    card = torch.cuda.get_device_properties(device)
    return {"name": card.name, "memory_bytes": card.total_memory, **versions}
