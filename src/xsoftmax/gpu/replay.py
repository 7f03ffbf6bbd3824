"""Steps that a card repeats as one graph: their operations take it less time than the host takes to ask for each.

A first call is made operation by operation, which loads and compiles what is missing. A second one with inputs of the
same shapes records the operations as a CUDA graph, which that call and all later ones replay. The operations are the
same ones either way, and so are the bits.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor

from xsoftmax.gpu.elementwise import warn
from xsoftmax.internal.errors import first_line

REPLAYED_ON = ("cuda",)


class Replayed:
    """Calls of one function, replayed on a card for the first shapes that come twice, and made as they are otherwise.

    Where CUDA does not record them, a warning says so, once, and all are made as they are.

    Parameters
    ----------
    generators : sequence of torch.Generator
        Those on the device that the function draws from: a replay draws what a call would.
    """

    def __init__(self, generators: Sequence[torch.Generator] = ()) -> None:
        self._generators = generators
        self._met: set[Any] = set()
        self._recorded: _Recorded | None = None
        self._refused = False

    def __call__(self, function: Callable[..., Tensor], *given: Tensor) -> Tensor:
        """Call the function, or replay it.

        Parameters
        ----------
        function : callable
            From tensors to one tensor; the same one each time. What else it reads or writes has to stay in its place
            on the device, and nothing that it computes on the host may differ from call to call.
        given : Tensor of any shape
            What it is called with, all on one device.

        Returns
        -------
        Tensor
            What the function gives; no other call changes it.
        """
        if given[0].device.type not in REPLAYED_ON or self._refused:
            return function(*given)
        shapes = _shapes(given)
        if self._recorded is None and shapes in self._met:
            self._record(function, given)
        self._met.add(shapes)
        if self._recorded is None or self._recorded.shapes != shapes:
            return function(*given)
        return self._recorded.replayed(given)

    def _record(self, function: Callable[..., Tensor], given: tuple[Tensor, ...]) -> None:
        try:
            self._recorded = _Recorded(function, given, self._generators)
        except RuntimeError as error:  # too little memory is one, too: a call took no more than there was
            self._refused = True
            cause = error.__context__ or error  # what failed within, not the end of the recording
            warn(f"steps are not recorded as a CUDA graph here ({first_line(cause)}); they take more time without it")


class _Recorded:
    """A graph, and the places of its inputs and its result."""

    def __init__(
        self, function: Callable[..., Tensor], given: tuple[Tensor, ...], generators: Sequence[torch.Generator]
    ) -> None:
        self.shapes = _shapes(given)
        self._inputs = [torch.empty_like(each) for each in given]
        self.device = given[0].device
        stream = _stream_of(self.device)
        # the stream is put back by what is outside, even where the end of a recording fails
        with torch.cuda.device(self.device), torch.cuda.stream(stream):
            self._graph = torch.cuda.CUDAGraph()
            for generator in generators:
                self._graph.register_generator_state(generator)
            with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
                before = _unused()
                self._result = function(*self._inputs)
                self.held = _unused() - before
        _LIVE.add(self)

    def replayed(self, given: tuple[Tensor, ...]) -> Tensor:
        for place, each in zip(self._inputs, given, strict=True):
            place.copy_(each)
        self._graph.replay()
        return self._result.clone()


# Those of which there is still a graph.
_LIVE: WeakSet[_Recorded] = WeakSet()


def held_on(device: int) -> int:
    """Count the bytes of a card that nothing is in, and that recorded steps keep for their replays."""
    return sum(each.held for each in _LIVE if each.device.index == device)


def _unused() -> int:
    return torch.cuda.memory_reserved() - torch.cuda.memory_allocated()


@cache
def _stream_of(device: torch.device) -> torch.cuda.Stream:
    """Give the stream on which a device records: one for all, as CUDA's libraries take memory for each."""
    return torch.cuda.Stream(device)


def _shapes(given: tuple[Tensor, ...]) -> tuple[torch.Size, ...]:
    return tuple(each.shape for each in given)
