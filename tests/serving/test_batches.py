"""Requests that wait are answered together, none waits for ever, and too many are turned away."""

import asyncio
import threading

import pytest

from xsoftmax.serving.batches import Batcher
from xsoftmax.serving.request_rows import RequestError
from xsoftmax.serving.requests import Asked, Limits


def run(batcher_of, ask):
    """Run a batcher beside what asks it."""

    async def both():
        batcher = batcher_of()
        task = asyncio.create_task(batcher.run())
        try:
            return await ask(batcher)
        finally:
            task.cancel()

    return asyncio.run(both())


def one(text="a", n=1):
    return Asked([text] * n, 1, False)


def test_what_waits_is_answered_together():
    batches, first, go = [], threading.Event(), threading.Event()

    def answer(asked):
        batches.append([each.rows[0] for each in asked])
        first.set()
        assert go.wait(20)
        return [each.rows[0].upper() for each in asked]

    async def ask(batcher):
        tasks = [asyncio.create_task(batcher.ask(one("a")))]
        await asyncio.to_thread(first.wait, 20)
        tasks += [asyncio.create_task(batcher.ask(one(text))) for text in "bcd"]
        await asyncio.sleep(0.05)
        go.set()
        return await asyncio.gather(*tasks)

    assert run(lambda: Batcher(answer, Limits()), ask) == ["A", "B", "C", "D"]
    assert batches == [["a"], ["b", "c", "d"]]


def test_after_a_batch_that_fails_as_a_whole_later_ones_are_answered():
    def answer(asked):
        if asked[0].rows[0] == "a":
            raise MemoryError("no memory")
        return [each.rows[0].upper() for each in asked]

    async def ask(batcher):
        with pytest.raises(MemoryError, match="no memory"):
            await batcher.ask(one("a"))
        return await batcher.ask(one("b"))

    assert run(lambda: Batcher(answer, Limits(seconds=20)), ask) == "B"


def test_a_batch_has_no_more_rows_than_a_request_may_have():
    sizes = []

    def answer(asked):
        sizes.append([each.n_rows for each in asked])
        return [None] * len(asked)

    async def ask(batcher):
        await asyncio.gather(*(batcher.ask(one(n=n)) for n in (3, 3, 5, 1, 4)))

    run(lambda: Batcher(answer, Limits(rows=5)), ask)
    assert sizes == [[3], [3], [5], [1, 4]]


def test_a_batch_waits_for_more_once_requests_have_come_together():
    sizes = []

    def answer(asked):
        sizes.append(len(asked))
        return [None] * len(asked)

    async def ask(batcher):
        await batcher.ask(one())  # alone, and so not made to wait
        await asyncio.gather(batcher.ask(one()), batcher.ask(one()))
        later = asyncio.create_task(batcher.ask(one()))
        await asyncio.sleep(0.05)
        await asyncio.gather(later, batcher.ask(one()))

    run(lambda: Batcher(answer, Limits(), gather=0.5), ask)
    assert sizes == [1, 2, 2]


@pytest.mark.fault(
    "more requests than a server can answer, or one that takes too long",
    happens="as many wait as `--max-waiting` says; others are turned away at once; none waits longer than "
    "`--max-seconds`",
    user='status 503 with `Retry-After`, or 504, and `{"error": "…"}`',
)
def test_too_many_are_turned_away_and_none_waits_for_ever():
    go = threading.Event()

    def answer(asked):
        assert go.wait(20)
        return [ValueError("of this one")] * len(asked)

    async def ask(batcher):
        tasks = [asyncio.create_task(batcher.ask(one())) for _ in range(4)]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        go.set()
        last = await asyncio.gather(batcher.ask(one()), return_exceptions=True)
        return [*found, *last]

    found = run(lambda: Batcher(answer, Limits(waiting=3, seconds=0.3)), ask)
    assert [each.status for each in found[:4] if isinstance(each, RequestError)] == [504, 504, 504, 503]
    assert "no answer within 0.3 s" in str(found[0])
    assert "3 requests wait already" in str(found[3])
    assert isinstance(found[4], ValueError)
