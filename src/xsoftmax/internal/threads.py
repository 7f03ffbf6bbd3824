"""A few threads for compiled code that runs without Python's lock."""

import os
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import Any

from threadpoolctl import ThreadpoolController

from xsoftmax.internal.errors import InputError

MOST_THREADS = 1024


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS computes on one thread: how products are split among threads changes bits.

    The command line does so from its start; this is for what a library's user calls.
    """
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes a millisecond


class ThreadPool:
    """Threads that wait for work; with one, work is done by whoever asks.

    If there are as many as this process may use cores, each stays on a core of its own: left to the system, two
    short tasks may share one.

    Parameters
    ----------
    n_threads : int
    """

    def __init__(self, n_threads: int = 1) -> None:
        if not 1 <= n_threads <= MOST_THREADS:
            raise InputError(f"threads is {n_threads}; set it to 1 or more, {MOST_THREADS} at most")
        self.n_threads = n_threads
        self._waiting: list[queue.SimpleQueue] = []
        self._done: queue.SimpleQueue = queue.SimpleQueue()

    def run(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Do all tasks, the j-th on thread j modulo their number; return their results in order.

        Raises
        ------
        Exception
            The first that a task raised, once all tasks have ended.
        """
        if self.n_threads == 1 or len(tasks) == 1:
            return [task() for task in tasks]
        if not self._waiting:
            self._start()
        for j, task in enumerate(tasks):
            self._waiting[j % self.n_threads].put((j, task))
        results: list[Any] = [None] * len(tasks)
        errors = []
        for _ in tasks:
            j, result, error = self._done.get()
            results[j] = result
            if error is not None:
                errors.append((j, error))
        if errors:
            raise min(errors, key=lambda pair: pair[0])[1]
        return results

    def close(self) -> None:
        """End the threads; ``run`` starts new ones."""
        for waiting in self._waiting:
            waiting.put(None)
        self._waiting = []

    def _start(self) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        for j in range(self.n_threads):
            waiting: queue.SimpleQueue = queue.SimpleQueue()
            core = cores[j] if len(cores) == self.n_threads else None
            threading.Thread(target=_work, args=(waiting, self._done, core), daemon=True).start()
            self._waiting.append(waiting)


def _work(waiting: queue.SimpleQueue, done: queue.SimpleQueue, core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})
    while (item := waiting.get()) is not None:
        j, task = item
        try:
            done.put((j, task(), None))
        except Exception as error:  # noqa: BLE001 - handed to whoever asked for the work
            done.put((j, None, error))
        item = task = None  # while it waits, it holds no arrays


def split_evenly(n: int, parts: int) -> list[slice]:
    """Cut 0..n into at most ``parts`` slices of nearly equal length, none empty."""
    bounds = [n * j // parts for j in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(bounds) if stop > start]
