"""How weights are held on a device: what is rounded is unbiased, and what is compensated loses next to nothing."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

from gpu.problems import DEVICE  # noqa: E402
from xsoftmax.gpu.precision import PRECISIONS, ClassWeights, multiply, precision_of, rounded  # noqa: E402
from xsoftmax.internal.errors import InputError  # noqa: E402

N_DRAWS = 20_000


def test_rounding_is_unbiased():
    """Of each value: the mean over draws is within 5 standard errors, and each draw is one of the two beside it."""
    rng = np.random.default_rng(1)
    values = torch.from_numpy((rng.normal(size=200) * 10.0 ** rng.integers(-20, 20, size=200)).astype(np.float32))
    values = values.to(DEVICE)
    draws = rounded(values.repeat(N_DRAWS, 1), torch.Generator(DEVICE).manual_seed(2)).double()
    lower, upper = draws.amin(0), draws.amax(0)
    exact = values.double()
    assert bool(((lower < exact) & (exact < upper)).all())
    assert bool(((draws == lower) | (draws == upper)).all())
    gap = upper - lower
    assert bool((gap <= exact.abs() * 2**-7).all()), "neighbours in bfloat16"
    up = (exact - lower) / gap
    errors = (draws.mean(0) - exact) / (gap * torch.sqrt(up * (1 - up) / N_DRAWS))
    assert float(errors.abs().max()) < 5
    assert 0.5 < float(errors.std()) < 1.5, "the errors are those of chance"


def test_nearest_rounding_is_not_unbiased():
    """Else the test above would prove nothing."""
    values = torch.full((1000,), 1 + 2.0**-10, device=DEVICE)
    assert float(values.bfloat16().float().mean()) == 1.0
    assert float(rounded(values.repeat(100)).float().mean()) == pytest.approx(1 + 2.0**-10, abs=3e-4)


def test_what_bfloat16_holds_stays():
    held = [0.0, -0.0, 1.0, -3.5, 2.0**-133, float("inf"), -float("inf"), 2.0**127]
    values = torch.tensor(held, device=DEVICE)
    found = rounded(values.repeat(50))
    assert torch.equal(found.float(), values.repeat(50))
    assert bool(rounded(torch.tensor([float("nan")] * 50, device=DEVICE)).isnan().all())


def test_a_seed_gives_the_same_bits():
    values = torch.rand(100, device=DEVICE)
    one, same, other = (rounded(values, torch.Generator(DEVICE).manual_seed(seed)) for seed in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def sum_of_small_changes(name: str, n_changes: int = 4000) -> torch.Tensor:
    """Add 2^-12 to ones, again and again: all of it is lost if sums are rounded to the nearest bfloat16."""
    rows = ClassWeights.allocate(4, 50, precision_of(name), DEVICE, seed=5)
    rows.add(torch.ones(4, 50, device=DEVICE), slice(0, 4))
    change = torch.full((4, 50), 2.0**-12, device=DEVICE)
    for _ in range(n_changes):
        rows.add(change, slice(0, 4))
    return rows.exact(slice(0, 4)).double()


def test_small_changes_add_up():
    expected = 1 + 4000 * 2.0**-12
    assert float((sum_of_small_changes("float32") - expected).abs().max()) == 0
    compensated = sum_of_small_changes("bfloat16-compensated")
    assert float((compensated - expected).abs().max()) < 4000 * 2.0**-17
    stochastic = sum_of_small_changes("bfloat16-stochastic")
    standard_error = np.sqrt(4000 * 2.0**-12 * 2.0**-7) / np.sqrt(200)  # steps of 2^-7, taken with probability 2^-5
    assert abs(float(stochastic.mean()) - expected) < 5 * standard_error


@pytest.mark.parametrize("name", PRECISIONS)
def test_rows_by_index_are_rows_by_slice(name):
    change = torch.linspace(-1, 1, 30, dtype=precision_of(name).sums, device=DEVICE).reshape(5, 6)
    by_slice, by_index = (ClassWeights.allocate(9, 6, precision_of(name), DEVICE, seed=1) for _ in range(2))
    by_slice.add(change, slice(2, 7))
    by_index.add(change, torch.arange(2, 7, device=DEVICE))
    assert torch.equal(by_slice.values, by_index.values)
    assert int((by_slice.values != 0).any(1).sum()) == 5
    assert by_slice.exact(slice(2, 7)).dtype == precision_of(name).sums


@pytest.mark.parametrize("name", PRECISIONS)
def test_products_have_the_error_of_their_factors(name):
    precision = precision_of(name)
    X = torch.randn(7, 300, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    W = torch.randn(300, 11, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    X, W = X.to(DEVICE), W.to(DEVICE)
    found = multiply(X, W, precision)
    assert found.dtype == precision.sums
    unit = {torch.bfloat16: 2.0**-8, torch.float32: 2.0**-22, torch.float64: 2.0**-50}[precision.factors]
    if precision.tf32 and DEVICE != "cpu":
        unit = 2.0**-10
    size = X.abs() @ W.abs()
    error = (found.double() - X @ W).abs() / size
    assert float(error.max()) < unit
    assert precision.factors != torch.bfloat16 or float(error.max()) > 2.0**-14, "the factors were not rounded"


def test_sums_of_bfloat16_products_are_of_float32():
    """257 ones: bfloat16 has no such number, and a sum in bfloat16 stops at 256."""
    ones = torch.ones(1, 257, device=DEVICE)
    assert float(multiply(ones, ones.T, precision_of("bfloat16"))) == 257


def test_tf32_is_set_for_a_product_only(monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "mm", lambda a, b: seen.append(torch.backends.cuda.matmul.allow_tf32) or a @ b)
    for name in ("tf32", "float32", "tf32"):
        multiply(torch.ones(1, 1), torch.ones(1, 1), precision_of(name))
    assert seen == [True, False, True]
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_bytes_are_those_of_the_tensors():
    for precision in PRECISIONS.values():
        rows = ClassWeights.allocate(3, 4, precision)
        tensors = [rows.values, *([] if rows.compensation is None else [rows.compensation])]
        assert rows.n_bytes == sum(each.numel() * each.element_size() for each in tensors)


def test_an_unknown_precision_is_named():
    with pytest.raises(InputError, match=r"unknown precision 'bf16'; known: float64, .*bfloat16-compensated"):
        precision_of("bf16")
