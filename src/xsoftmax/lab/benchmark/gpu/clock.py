"""Seconds and peak bytes of work on a device: the clock waits for the device, and each tensor is counted."""

import time
import weakref
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SECONDS = 1.0  # of calls of one thing, after the first
MOST_CALLS = 50


def wait_for(device: torch.device) -> None:
    """Wait until a device has done all that it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(run: Callable[[], object], device: torch.device) -> list[float]:
    """Time calls one by one, after one outside the clock, until ``SECONDS`` have passed: at least 2, at most 50."""
    run()
    wait_for(device)
    found: list[float] = []
    while len(found) < 2 or (sum(found) < SECONDS and len(found) < MOST_CALLS):
        start = time.perf_counter()
        run()
        wait_for(device)
        found.append(time.perf_counter() - start)
    return found


def typical(seconds: list[float]) -> float:
    """Give the median."""
    return float(median(seconds))


def peak_bytes(run: Callable[[], object], device: torch.device) -> int:
    """Call once, and give the bytes of tensors at the peak beyond those that were there before.

    On a card these are what PyTorch's allocator counts. On the CPU device they are the storages of what operations
    return; what an operation needs within itself does not count.
    """
    if device.type == "cuda":
        wait_for(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        wait_for(device)
        return torch.cuda.max_memory_allocated(device) - before
    with _Storages() as storages:
        run()
    return storages.peak


class _Storages(TorchDispatchMode):
    """Counts the bytes of storages that operations make, while they live."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._now = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {each.untyped_storage().data_ptr() for each in _tensors([args, kwargs or {}])}
        found = function(*args, **(kwargs or {}))
        for tensor in _tensors(found):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in given | self._known:
                self._add(storage)
        return found

    def _add(self, storage: torch.UntypedStorage) -> None:
        address, n_bytes = storage.data_ptr(), storage.nbytes()
        self._known.add(address)
        self._now += n_bytes
        self.peak = max(self.peak, self._now)
        weakref.finalize(storage, self._remove, address, n_bytes)

    def _remove(self, address: int, n_bytes: int) -> None:
        self._known.discard(address)
        self._now -= n_bytes


def _tensors(values: Any) -> list[torch.Tensor]:
    return [each for each in torch.utils._pytree.tree_leaves(values) if isinstance(each, torch.Tensor)]
