"""From the host to a device: on a card through pinned memory, on a stream of its own, behind what is computed there.

While a card computes a minibatch, the host gathers the rows of the next one, and sends them. PyTorch keeps pinned
memory that it is done with, and gives it out again once the copy out of it has ended.
"""

import numpy as np
import torch
from torch import Tensor


class Sender:
    """Sends arrays to one device.

    Parameters
    ----------
    device : torch.device
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if self.pins else None

    @property
    def pins(self) -> bool:
        """Whether arrays go through pinned memory: those of ``empty`` without another copy."""
        return self._device.type == "cuda"

    def empty(self, shape: tuple[int, ...] | int, dtype: torch.dtype) -> np.ndarray:
        """Give an array to be filled and sent."""
        return torch.empty(shape, dtype=dtype, pin_memory=self.pins).numpy()

    def send(self, array: np.ndarray, dtype: torch.dtype | None = None) -> Tensor:
        """Send an array, as another dtype if one is given: what is computed with it waits, and the host does not."""
        host = torch.from_numpy(array)
        if self._stream is None:
            return host.to(self._device, dtype)
        if not host.is_pinned():
            host = host.pin_memory()
        with torch.cuda.stream(self._stream):
            there = host.to(self._device, non_blocking=True)
        computing = torch.cuda.current_stream(self._device)
        computing.wait_stream(self._stream)
        there.record_stream(computing)  # type: ignore[no-untyped-call]
        return there if dtype is None else there.to(dtype)
