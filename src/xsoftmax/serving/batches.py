"""Requests that wait are answered together: to score a few rows at once takes little longer than one alone.

A batch is what waits when the one before is done. Once several requests have come together, the next batch waits
``gather`` seconds for more; a client that is alone waits for nobody.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from xsoftmax.serving.request_rows import RequestError
from xsoftmax.serving.requests import Asked, Limits


class _Waiting(NamedTuple):
    asked: Asked
    answer: "asyncio.Future[Any]"


class Batcher:
    """Gather requests, and have them answered in a thread, one batch after the other.

    Parameters
    ----------
    answer : callable
        Takes requests; returns as many answers, or exceptions.
    limits : Limits
    gather : float
        Seconds that a batch waits for more, where the one before was of several requests.
    """

    def __init__(self, answer: Callable[[Sequence[Asked]], Sequence[Any]], limits: Limits, gather: float = 0) -> None:
        self._answer, self._limits, self._gather = answer, limits, gather
        self._waiting: deque[_Waiting] = deque()
        self._more = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "scoring")

    @property
    def n_waiting(self) -> int:
        """Count the requests that wait to be begun."""
        return len(self._waiting)

    async def ask(self, asked: Asked) -> Any:
        """Wait for the answer to a request.

        Raises
        ------
        RequestError
            If too many wait, or no answer has come in time; or what went wrong with this one.
        """
        if len(self._waiting) >= self._limits.waiting:
            raise RequestError(f"{len(self._waiting)} requests wait already; try again in a second", 503)
        waiting = _Waiting(asked, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._more.set()
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await waiting.answer
        except TimeoutError:
            seconds = f"{self._limits.seconds:g}"
            raise RequestError(f"no answer within {seconds} s; send fewer rows, or try later", 504) from None

    async def run(self) -> None:
        """Answer what comes, until cancelled."""
        loop, together = asyncio.get_running_loop(), False
        while True:
            await self._more.wait()
            if self._gather and together and sum(each.asked.n_rows for each in self._waiting) < self._limits.rows:
                await asyncio.sleep(self._gather)
            batch = self._next()
            together = len(batch) > 1
            if batch:
                asked = [each.asked for each in batch]
                try:
                    answers = await loop.run_in_executor(self._thread, self._answer, asked)
                except Exception as error:  # noqa: BLE001 - of these requests; those that come later are answered
                    answers = [error] * len(batch)
                for each, answer in zip(batch, answers, strict=True):
                    _tell(each.answer, answer)

    def _next(self) -> list[_Waiting]:
        """Take those that waited longest, up to the rows of a batch; those who have gone are passed over."""
        batch: list[_Waiting] = []
        n_rows = 0
        while self._waiting and (not batch or n_rows + self._waiting[0].asked.n_rows <= self._limits.rows):
            each = self._waiting.popleft()
            if not each.answer.done():
                batch.append(each)
                n_rows += each.asked.n_rows
        if not self._waiting:
            self._more.clear()
        return batch


def _tell(waiting: "asyncio.Future[Any]", answer: Any) -> None:
    if waiting.done():  # whoever asked has gone
        return
    if isinstance(answer, Exception):
        waiting.set_exception(answer)
    else:
        waiting.set_result(answer)
