"""What a server counts, for Prometheus; numbers of all workers are added up if ``share`` was called before."""

import os

from xsoftmax.internal.errors import InputError

SHARED = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def share(folder: str) -> None:
    """Have workers count in files of a folder, so that each can tell the sums; before anything is counted.

    Raises
    ------
    InputError
        If another program's folder is named already.
    """
    if SHARED in os.environ:
        raise InputError(f"{SHARED} is set, which a server with several workers sets itself; unset it")
    os.environ[SHARED] = folder


def forget(pid: int) -> None:
    """Say that a worker has ended: what waited in it does so no longer."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid)


class Measures:
    """Counts of requests, rows and batches."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = CollectorRegistry()
        at = {"registry": self._registry}
        self._requests = Counter("xsoftmax_requests", "Requests for predictions, by status", ["status"], **at)
        self._rows = Counter("xsoftmax_rows", "Rows that were asked for", **at)
        self._seconds = Histogram("xsoftmax_request_seconds", "From request to answer", buckets=SECONDS, **at)
        self._batch_rows = Histogram("xsoftmax_batch_rows", "Rows that were scored together", buckets=ROWS, **at)
        self._batch_seconds = Histogram("xsoftmax_batch_seconds", "Scoring of a batch", buckets=SECONDS, **at)
        self._waiting = Gauge("xsoftmax_waiting", "Requests that wait", multiprocess_mode="livesum", **at)

    def request(self, status: int, n_rows: int, seconds: float, n_waiting: int) -> None:
        """Count a request that has been answered."""
        self._requests.labels(str(status)).inc()
        self._rows.inc(n_rows)
        self._seconds.observe(seconds)
        self._waiting.set(n_waiting)

    def batch(self, n_rows: int, seconds: float) -> None:
        """Count a batch that has been scored."""
        self._batch_rows.observe(n_rows)
        self._batch_seconds.observe(seconds)

    def written(self) -> tuple[bytes, int, None, str]:
        """Give all numbers in Prometheus's text form: content, status, headers, and the content's type."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = self._registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return generate_latest(registry), 200, None, CONTENT_TYPE_LATEST
