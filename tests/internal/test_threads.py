"""Teams of threads."""

import os
import threading

import pytest

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool, split_evenly


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_results_come_in_order_of_tasks(n_threads):
    pool = ThreadPool(n_threads)
    assert pool.run([lambda j=j: j * j for j in range(7)]) == [j * j for j in range(7)]
    assert pool.run([]) == []
    pool.close()
    assert pool.run([lambda: 1, lambda: 2]) == [1, 2]


def test_tasks_run_at_once():
    """Two tasks that wait for one another end only if both run."""
    meeting = threading.Barrier(2)
    ThreadPool(2).run([lambda: meeting.wait(10), lambda: meeting.wait(10)])


def test_the_first_error_comes_back_when_all_have_ended():
    ended = []

    def fail(j):
        ended.append(j)
        raise ValueError(j)

    with pytest.raises(ValueError, match=r"^0$"):
        ThreadPool(2).run([lambda: fail(0), lambda: fail(1), lambda: ended.append(2)])
    assert sorted(ended) == [0, 1, 2]


def test_threads_stay_on_cores_of_their_own_when_all_cores_are_used():
    cores = os.sched_getaffinity(0)
    found = ThreadPool(len(cores)).run([lambda: os.sched_getaffinity(0)] * len(cores))
    if len(cores) > 1:
        assert sorted(found, key=min) == [{core} for core in sorted(cores)]
    more = ThreadPool(len(cores) + 1).run([lambda: os.sched_getaffinity(0)] * (len(cores) + 1))
    assert more == [cores] * (len(cores) + 1)
    assert os.sched_getaffinity(0) == cores


def test_no_threads_are_refused():
    with pytest.raises(InputError, match="threads is 0"):
        ThreadPool(0)


@pytest.mark.parametrize(("n", "parts"), [(10, 3), (2, 5), (0, 2), (7, 1)])
def test_parts_cover_everything_once(n, parts):
    slices = split_evenly(n, parts)
    assert [i for each in slices for i in range(n)[each]] == list(range(n))
    lengths = [each.stop - each.start for each in slices]
    assert not lengths or (min(lengths) > 0 and max(lengths) - min(lengths) <= 1)
