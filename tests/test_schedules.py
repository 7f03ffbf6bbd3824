import pytest

from xsoftmax.schedules import Stairs, schedule_type


def test_stairs_fall_after_so_many_samples():
    stairs = Stairs(decay=0.9, every=2000)
    steps = (0, 1999, 2000, 3999, 4000, 20_000)
    assert [stairs.factor(7, step) for step in steps] == pytest.approx([1, 1, 0.9, 0.9, 0.81, 0.9**10])
    assert schedule_type("stairs") is Stairs
