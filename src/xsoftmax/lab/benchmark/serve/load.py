"""Load on a server: clients that send one request after the other, each over a connection of its own."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil

from xsoftmax.internal.errors import InputError

WARM_UP = 0.3  # of the seconds, not counted


def measured(
    model: Path, requests: Sequence[bytes], words: Sequence[object], clients: Sequence[int], seconds: float
) -> Iterator[dict[str, Any]]:
    """Serve a model, and measure it with each number of clients.

    ``p50`` and ``p99`` are seconds to an answer, ``per_second`` answers; ``cpu_seconds`` are what the server computed
    for an answer, which tells the cost on a busy machine, too.
    """
    with served(model, words) as (program, address, start):
        for n_clients in clients:
            _requested(address, requests, n_clients, WARM_UP * seconds)
            before = _computed(program.pid)
            taken = _requested(address, requests, n_clients, seconds)
            yield {
                "clients": n_clients,
                "p50": float(np.percentile(taken, 50)),
                "p99": float(np.percentile(taken, 99)),
                "per_second": len(taken) / seconds,
                "answers": len(taken),
                "cpu_seconds": (_computed(program.pid) - before) / len(taken),
                "start_seconds": start,
                "memory_bytes": _memory(program.pid),
            }


@contextmanager
def served(model: Path, words: Sequence[object]) -> Iterator[tuple[Any, tuple[str, int], float]]:
    """Run a server at a free port: its process, its address, and the seconds to its start.

    Raises
    ------
    InputError
        If it does not begin.
    """
    begin = time.perf_counter()
    command = [sys.executable, "-m", "xsoftmax", "serve", model, "--port", 0, *words]
    program = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    try:
        line = program.stdout.readline() if program.stdout else ""
        found = urlsplit(line.partition(": ")[0])
        if not found.hostname or not found.port:
            raise InputError(f"the server did not begin: {line.strip() or 'see above'}")
        yield program, (found.hostname, found.port), time.perf_counter() - begin
    finally:
        program.terminate()
        program.wait()


def _requested(address: tuple[str, int], requests: Sequence[bytes], n_clients: int, seconds: float) -> list[float]:
    """Send requests for so long; return how long each took.

    Raises
    ------
    InputError
        If one is refused.
    """
    end, numbers = time.perf_counter() + seconds, count()
    taken: list[float] = []
    refused: list[str] = []

    def ask() -> None:
        connection = HTTPConnection(*address)
        while (begin := time.perf_counter()) < end and not refused:
            connection.request("POST", "/predict", requests[next(numbers) % len(requests)])
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200:
                refused.append(said.decode())
            taken.append(time.perf_counter() - begin)
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(n_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if refused:
        raise InputError(f"the server refused: {refused[0]}")
    return taken


def _computed(pid: int) -> float:
    """Count the seconds that the workers have computed."""
    return sum(each.cpu_times().user + each.cpu_times().system for each in psutil.Process(pid).children())


def _memory(pid: int) -> int:
    """Count the bytes that all processes hold together, what they share once (PSS)."""
    program = psutil.Process(pid)
    return sum(each.memory_full_info().pss for each in (program, *program.children(recursive=True)))
