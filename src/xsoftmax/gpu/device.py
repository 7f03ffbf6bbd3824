"""Which device a method trains on, and whether there is such a one; torch is imported when somebody asks."""

import os
from argparse import ArgumentParser
from collections.abc import Mapping
from importlib.util import find_spec

from xsoftmax.gpu.same_bits import loaded_torch
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import MB, free_bytes

# Compiled code on this machine's processors, without PyTorch: what a method trains on if it does not say.
NUMBA = "numba"
# What a method may ask for; with auto, a card where there is one, and compiled code otherwise.
DEVICES = (NUMBA, "cpu", "cuda", "auto")
# Those of PyTorch.
OF_TORCH = ("cpu", "cuda")
# What a method may ask of a device of PyTorch, and the bytes of a weight there: see ``xsoftmax.gpu.precision``.
BYTES_PER_WEIGHT = {"float32": 4, "tf32": 4, "bfloat16": 4, "bfloat16-stochastic": 2, "bfloat16-compensated": 4}
SINGLE = "float32"


def place_of(device: str) -> str:
    """Name what a method's ``device`` stands for on this machine: "numba", "cpu" or "cuda"."""
    if device != "auto":
        return device
    return "cuda" if has_card() else NUMBA


def add_device(parser: ArgumentParser, what: str = "where scores are made") -> None:
    """Let something of a command be done on a device: see ``chosen_place``."""
    parser.add_argument(
        "--device",
        choices=DEVICES,
        default=NUMBA,
        help=f"{what}: numba is compiled code, cpu and cuda are PyTorch's, auto is cuda if there is a card "
        "(default: %(default)s)",
    )


def chosen_place(device: str, does: str = "scores") -> str:
    """Name what a command's ``--device`` stands for on this machine, making sure that it is there.

    ``does`` is what is done there: see ``require_for``.

    Raises
    ------
    InputError
        If not.
    """
    place = place_of(device)
    require_for(f"--device is {device}", place, does)
    return place


def has_card() -> bool:
    """Tell whether PyTorch is here and finds a card."""
    return find_spec("torch") is not None and bool(loaded_torch().cuda.is_available())


def require(name: str, place: str) -> None:
    """Make sure that a method can train on a device, before anything is read or written.

    Parameters
    ----------
    name : str
        The method's.
    place : {"numba", "cpu", "cuda"}

    Raises
    ------
    InputError
        If PyTorch is missing, or is one without CUDA, or finds no card.
    """
    require_for(f"method {name}: device is {place}", place, "trains")


def require_for(where: str, place: str, does: str) -> None:
    """As ``require``, for something else that a device ``does``; messages begin with ``where``."""
    if place == NUMBA:
        return
    if find_spec("torch") is None:
        raise InputError(
            f"{where}, and PyTorch is not installed; pip install 'xsoftmax[gpu]', or leave device out: compiled code "
            f"then {does} on this machine's processors"
        )
    if place == "cuda":
        torch = loaded_torch()
        if torch.version.cuda is None:
            raise InputError(
                f"{where}, and PyTorch {torch.__version__} was built without CUDA; install one with it "
                "(https://pytorch.org), or set device: auto"
            )
        if not torch.cuda.is_available():
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            seen = "" if visible is None else f" (CUDA_VISIBLE_DEVICES is {visible!r})"
            raise InputError(
                f"{where}, and PyTorch finds no card{seen}; run it where there is one, or set device: auto"
            )


def free_on(place: str) -> int:
    """Tell how many bytes may still be taken on a device of PyTorch."""
    if place == "cpu":
        return free_bytes()
    from xsoftmax.gpu.replay import held_on

    cuda = loaded_torch().cuda
    unused = cuda.memory_reserved() - cuda.memory_allocated()
    return cuda.mem_get_info()[0] + unused - held_on(cuda.current_device())


def check_room(name: str, place: str, needed: Mapping[str, int], n_here: int = 1) -> None:
    """Make sure that a device has memory for a fit, before it is allocated there.

    Parameters
    ----------
    name : str
        The method's.
    place : {"cpu", "cuda"}
    needed : mapping of str to int
        Bytes by purpose.
    n_here : int
        Processes that take as much of this machine's memory; each has a card of its own.

    Raises
    ------
    InputError
        If it has less; says how much is needed, of what, and how much there is.
    """
    advice = "take a larger card, a smaller batch, or leave device out"
    ask_for_room(f"method {name}: device is {place}", place, needed, "the fit", advice, n_here)


def ask_for_room(where: str, place: str, needed: Mapping[str, int], taker: str, advice: str, n_here: int = 1) -> None:
    """As ``check_room``, for any ``taker``; messages begin with ``where`` and end with ``advice``."""
    total, free = sum(needed.values()), free_on(place) // (1 if place == "cuda" else n_here)
    if total > free:
        parts = ", ".join(f"{n_bytes // MB:,} MB for {what}" for what, n_bytes in needed.items())
        raise InputError(
            f"{where}, which has {free // MB:,} MB free, and {taker} takes {total // MB:,} MB of it: {parts}; "
            f"{advice}"
        )
