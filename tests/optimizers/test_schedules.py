import pytest

from xsoftmax.optimizers._schedules import ROUGHLY, Cosine, Linear, Power, Stairs, schedule_type


def test_stairs_fall_after_so_many_samples():
    stairs = Stairs(decay=0.9, every=2000)
    steps = (0, 1999, 2000, 3999, 4000, 20_000)
    assert [stairs.factor(7, step, 0.5) for step in steps] == pytest.approx([1, 1, 0.9, 0.9, 0.81, 0.9**10])
    assert schedule_type("stairs") is Stairs


def test_schedules_by_progress_end_at_zero():
    progress = (0.0, 0.25, 0.5, 0.75, 1.0)
    linear, cosine = ([kind().factor(3, 99, done) for done in progress] for kind in (Linear, Cosine))
    assert linear == pytest.approx([1, 0.75, 0.5, 0.25, 0], abs=1e-12)
    assert cosine == pytest.approx([1, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2, 0], abs=1e-12)
    assert (schedule_type("linear"), schedule_type("cosine")) == (Linear, Cosine)


@pytest.mark.parametrize("step", [0, 1, 99, 12_345])
@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_a_power_lasts_until_it_has_changed_by_a_twentieth(exponent, step):
    power = Power(scale=1000.0, exponent=exponent)
    later = step + power.lasts(step)
    assert power.factor(0, later, 0.0) / power.factor(0, step, 0.0) == pytest.approx(1 - ROUGHLY)


def test_a_constant_power_lasts_for_ever():
    assert Power(exponent=0.0).lasts(7) == float("inf")


def test_stairs_last_to_the_next_step():
    stairs = Stairs(decay=0.9, every=2000)
    assert [stairs.lasts(step) for step in (0, 1999, 2000, 2001)] == [2000, 1, 2000, 1999]
