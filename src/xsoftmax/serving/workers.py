"""Processes that answer at one socket: forked from one that has loaded the model, so that they share its memory.

The first process only watches. A worker that dies is replaced; on SIGTERM all stop taking requests, answer those that
they have, and end; if the first process is killed, the workers end by themselves.
"""

import errno
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from xsoftmax.internal.errors import InputError

BACKLOG = 2048
MOST_WORKERS = 256
# A worker that ends sooner was not well from its start; after so many of them there is no use in more.
SECONDS_TO_LIVE, MOST_DEATHS = 5.0, 3


def bound(host: str, port: int) -> socket.socket:
    """Take an address, without letting anyone in.

    Raises
    ------
    InputError
        If it is in use, is not ours, or may not be used.
    """
    if not 0 <= port < 2**16:
        raise InputError(f"--port is {port}; set it to a number from 0, any that is free, to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InputError(f"--host is {host!r}, which is no address ({error}); take 127.0.0.1") from None
    found = socket.socket(family, kind, protocol)  # with the protocol, asyncio turns Nagle's delay of 40 ms off
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        raise InputError(_refused(error, host, port)) from None
    found.setblocking(False)
    return found


def listen(taken: socket.socket) -> None:
    """Let others in; errors as of ``bound``."""
    host, port = taken.getsockname()[:2]
    try:
        taken.listen(BACKLOG)
    except OSError as error:  # someone was faster
        raise InputError(_refused(error, host, port)) from None


def _refused(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use; choose another with --port, 0 for any that is free"
    if error.errno == errno.EACCES:
        return f"port {port} may not be used without more rights; choose one from 1024 with --port"
    return f"{host} cannot be listened at ({error.strerror}); take 127.0.0.1, or an address of this machine"


def supervise(
    work: Callable[[], None], n_workers: int, close: Callable[[], Any], forget: Callable[[int], Any]
) -> None:
    """Run workers until told to stop.

    Parameters
    ----------
    work : callable
        What a worker does; it ends on SIGTERM.
    n_workers : int
    close : callable
        Closes the socket here, so that nobody new is let in.
    forget : callable
        Is told the number of each process that has ended.

    Raises
    ------
    InputError
        If workers die again and again.
    """
    alive, life = os.pipe()  # the writing end closes with this process
    begun: dict[int, float] = {}
    deaths = 0
    with _told(begun, close) as stop:
        for _ in range(n_workers):
            _fork(work, (alive, life), begun)
        while begun:
            pid, status = os.wait()
            lived = time.monotonic() - begun.pop(pid, time.monotonic())
            forget(pid)
            if stop.is_set():
                continue
            deaths = deaths + 1 if lived < SECONDS_TO_LIVE else 1
            if deaths > MOST_DEATHS:
                _end(begun, signal.SIGTERM)
                raise InputError(
                    f"workers die as soon as they begin (last: {_end_of(status)}); look at what they say"
                )
            print(
                f"warning: a worker ended by {_end_of(status)}; another takes its place", file=sys.stderr, flush=True
            )
            _fork(work, (alive, life), begun)


@contextmanager
def _told(begun: dict[int, float], close: Callable[[], Any]) -> Iterator[threading.Event]:
    """Pass the wish to stop on to the workers; a second Ctrl-C is not waited for."""
    stop = threading.Event()

    def on_signal(number: int, frame: object) -> None:
        again = stop.is_set()
        stop.set()
        close()
        _end(begun, signal.SIGKILL if again and number == signal.SIGINT else signal.SIGTERM)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fork(work: Callable[[], None], pipe: tuple[int, int], begun: dict[int, float]) -> None:
    """Begin a worker; signals wait until its number is known, and until it has handlers of its own."""
    told = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, told)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _become(work, pipe)
    begun[pid] = time.monotonic()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, told)


def _become(work: Callable[[], None], pipe: tuple[int, int]) -> None:
    """Be a worker to the end."""
    alive, life = pipe
    os.close(life)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of Ctrl-C, which the first process passes on
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:  # noqa: BLE001 - a fork has nobody to raise it to
        print(f"error: a worker failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _end_with(alive: int) -> None:
    """Wait for the end of the first process, and stop as it would have told us to."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _end(begun: dict[int, float], number: int) -> None:
    for pid in begun:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _end_of(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"status {code}"
