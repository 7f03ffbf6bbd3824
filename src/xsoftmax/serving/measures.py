"""What a server counts, for Prometheus; numbers of all workers are added up within ``shared``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SHARED = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@contextmanager
def shared(folder: str) -> Iterator[None]:
    """Have workers that are begun within count in files of a folder, so that each can tell the sums."""
    before = os.environ.get(SHARED)
    os.environ[SHARED] = folder
    try:
        import prometheus_client  # noqa: F401 - of the extra [serve]; reads this as it is imported

        yield
    finally:
        if before is None:
            del os.environ[SHARED]
        else:
            os.environ[SHARED] = before


def forget(pid: int) -> None:
    """Say that a worker has ended: what waited in it does so no longer."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid)


class Measures:
    """Counts of requests, rows and batches."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = CollectorRegistry()
        at: dict[str, Any] = {"registry": self._registry}
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
