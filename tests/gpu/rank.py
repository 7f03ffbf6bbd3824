"""One rank of sharded fits, as a program: ``python rank.py RANK N_RANKS FOLDER``; it writes what it has."""

import sys
from pathlib import Path

import torch
from torch import distributed

from xsoftmax.gpu import fused_softmax
from xsoftmax.gpu.fused_softmax import Update
from xsoftmax.gpu.precision import ClassWeights, precision_of
from xsoftmax.gpu.sharded import Ranks, ShardedSoftmax, shard_of
from xsoftmax.internal.errors import InputError

N_SAMPLES, N_CLASSES, N_FEATURES, N_STEPS = 48, 103, 64, 4
NAMES = ("float64", "float32")


def batches(dtype: torch.dtype, n_samples: int = N_SAMPLES) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Samples and classes of each step, for all ranks."""
    generator = torch.Generator().manual_seed(3)
    return [
        (
            torch.randn(n_samples, N_FEATURES, generator=generator).to(dtype),
            torch.randint(N_CLASSES, (n_samples,), generator=generator),
        )
        for _ in range(N_STEPS)
    ]


def weights(name: str, first: int = 0, stop: int = N_CLASSES) -> tuple[ClassWeights, torch.Tensor, Update]:
    """Weights, biases and accumulators of some classes, at the beginning."""
    W = ClassWeights.allocate(stop - first, N_FEATURES, precision_of(name))
    start = torch.randn(N_CLASSES, N_FEATURES, generator=torch.Generator().manual_seed(4)) / 8
    W.values.copy_(start[first:stop])
    b = torch.zeros(stop - first, dtype=W.precision.sums)
    return W, b, Update(0.3, torch.full_like(W.values, 0.01), torch.full_like(b, 0.01))


def whole(name: str) -> dict[str, torch.Tensor]:
    """What one process does without any other."""
    W, b, update = weights(name)
    found = [fused_softmax.step(X, y, W, b, update, block=10) for X, y in batches(W.precision.sums)]
    last = fused_softmax.sums_of(*batches(W.precision.sums)[0], W, b)
    return {"W": W.values, "b": b, "steps": torch.stack(found), "last": last.log_likelihood}


def train(ranks: Ranks, name: str, n_samples: int = N_SAMPLES) -> dict[str, torch.Tensor]:
    shard = shard_of(ranks.rank, ranks.n_ranks, N_CLASSES)
    W, b, update = weights(name, *shard)
    model = ShardedSoftmax(ranks, N_CLASSES, W, b, block=10)
    own = slice(ranks.rank * n_samples // ranks.n_ranks, (ranks.rank + 1) * n_samples // ranks.n_ranks)
    before = ranks.sent
    all_batches = [(X[own], y[own]) for X, y in batches(W.precision.sums, n_samples)]
    found = [model.step(X, y, update) for X, y in all_batches]
    sent = torch.tensor(ranks.sent - before)
    last = model.log_likelihood(*all_batches[0])
    return {"W": W.values, "b": b, "steps": torch.stack(found), "last": last, "sent": sent}


def refusals(ranks: Ranks) -> list[str]:
    """What is said on this rank where ranks differ."""

    def other_classes() -> None:
        ShardedSoftmax(ranks, N_CLASSES + ranks.rank, weights("float32")[0])

    def other_shard() -> None:
        ShardedSoftmax(ranks, N_CLASSES, weights("float32", *shard_of(1, ranks.n_ranks, N_CLASSES))[0])

    def other_samples() -> None:
        train(ranks, "float32", N_SAMPLES + 1)

    found = []
    for fault in (other_classes, other_shard, other_samples):
        try:
            fault()
        except InputError as error:
            found.append(str(error))
    return found


def main(rank: int, n_ranks: int, folder: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=n_ranks)
    ranks = Ranks()
    found = {name: train(ranks, name) for name in NAMES}
    torch.save(found | {"refusals": refusals(ranks)}, folder / f"{rank}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
