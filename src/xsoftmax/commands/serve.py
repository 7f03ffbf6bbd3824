"""Serve a model over HTTP: the likeliest classes of rows that come as JSON, gathered into batches.

    xsoftmax serve model.h5
    curl -s http://127.0.0.1:8000/predict -d '{"texts": ["soft and red"], "top": 3}'

It listens on this machine only unless --host says otherwise; there are no passwords. It stops on SIGTERM or Ctrl-C,
once requests that have begun are answered. docs/serving.md tells more.
"""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any

from xsoftmax.commands.inspect import described
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.serving import measures, workers
from xsoftmax.serving.index import KINDS, PROBES
from xsoftmax.serving.requests import Limits

LOOPBACK = ("127.0.0.1", "::1", "localhost")
DEFAULTS = Limits()
MOST_GATHERED = 1000.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("model", type=Path, help="model.h5 of a fit, or of an estimator's save")
    parser.add_argument("--host", default=LOOPBACK[0], help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=1, help="processes that share the model (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=1, help="of each worker (default: %(default)s)")
    parser.add_argument(
        "--index", choices=KINDS, help="look for classes in an index, for models of dense rows and very many classes"
    )
    looks = ", ".join(f"{PROBES[kind]} {what}" for kind, what in zip(KINDS, ("candidates", "clusters"), strict=True))
    parser.add_argument("--probes", type=int, metavar="N", help=f"how far the index looks (default: {looks})")
    parser.add_argument(
        "--gather",
        type=float,
        default=2.0,
        metavar="MS",
        help="milliseconds that a batch waits, once several requests came together (default: %(default)g)",
    )
    for name, what in (
        ("rows", "rows of a request"),
        ("body", "bytes of a request"),
        ("top", "classes for each row"),
        ("waiting", "requests that wait in each worker"),
        ("seconds", "seconds for a request to come, and to be answered"),
    ):
        value = getattr(DEFAULTS, name)
        parser.add_argument(
            f"--max-{name}",
            type=type(value),
            default=value,
            metavar="N",
            help=f"{what}, at most (default: {value:g})",
        )


def run(options: argparse.Namespace) -> None:
    """Serve until told to stop."""
    import uvicorn  # of the extra [serve], as is what the application imports

    from xsoftmax.serving.app import make_app
    from xsoftmax.serving.served import Served

    limits = Limits(*(getattr(options, f"max_{name}") for name in Limits._fields))
    _check(options, limits)
    with (
        workers.bound(options.host, options.port) as listening,
        TemporaryDirectory() as folder,
        measures.shared(folder),
    ):
        served = Served(options.model, options.index, options.probes)
        said = described(served.model, options.model.stat().st_size) | {"index": options.index}
        application = partial(make_app, served, said, limits, options.gather / 1000, options.threads)
        workers.listen(listening)
        print(f"{_address(listening)}: {options.model}, {served.model.n_classes} classes; Ctrl-C ends it", flush=True)
        work = partial(_work, uvicorn, application, listening, limits)
        workers.supervise(work, options.workers, listening.close, measures.forget)
    print("stopped: requests that had begun were answered", file=sys.stderr)


def _check(options: argparse.Namespace, limits: Limits) -> None:
    limits.check()
    ThreadPool(options.threads)
    if not 1 <= options.workers <= workers.MOST_WORKERS:
        raise InputError(f"--workers is {options.workers}; set it to a number from 1 to {workers.MOST_WORKERS}")
    if not 0 <= options.gather <= MOST_GATHERED:
        raise InputError(f"--gather is {options.gather:g}; set it to milliseconds from 0 to {MOST_GATHERED:g}")
    if options.probes is not None and options.index is None:
        raise InputError(f"--probes is {options.probes}, and there is no index; name one with --index")
    if options.host not in LOOPBACK:
        print(f"warning: others can reach {options.host}: there is no password, and no encryption", file=sys.stderr)


def _address(listening: socket) -> str:
    """Name the address in the way of a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _work(uvicorn: Any, application: Any, listening: Any, limits: Limits) -> None:
    """Answer requests, in a worker."""
    config = uvicorn.Config(
        application(),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(limits.seconds) + 1,
    )

    class Server(uvicorn.Server):
        """Ends on SIGTERM, as the first process tells it, and on nothing else."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            signal.signal(signal.SIGTERM, self.handle_exit)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
            yield

    Server(config).run(sockets=[listening])
