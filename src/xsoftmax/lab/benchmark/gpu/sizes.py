"""How large what is measured is: as the targets have it on a card, and small on a processor."""

from typing import NamedTuple

from xsoftmax.gpu.fused_softmax import BYTES_OF_A_BLOCK


class Sizes(NamedTuple):
    """Of the parts of the suite. ``exact``: samples of an epoch, classes, features; a step has ``batch`` samples.

    ``sampled``: classes, features, samples of a step, drawn classes of each. ``loss``: samples, classes, features.
    ``large``: classes, features, samples of a step. ``square`` is the side of the matrices whose product is a
    ceiling, and ``copied`` the bytes whose copy is the other. ``other_blocks`` are bytes of a block's scores that are
    tried beside those that training takes, ``xsoftmax.gpu.fused_softmax.BYTES_OF_A_BLOCK``.
    """

    exact: tuple[int, int, int]
    batch: int
    sampled: tuple[int, int, int, int]
    loss: tuple[int, int, int]
    large: tuple[int, int, int]
    square: int
    copied: int
    other_blocks: tuple[int, ...]

    @property
    def blocks(self) -> tuple[int, ...]:
        """Give bytes of all blocks that are tried, those of training first."""
        return BYTES_OF_A_BLOCK, *self.other_blocks


OF_A_CARD = Sizes(
    exact=(490_449, 213_874, 512),
    batch=4096,
    sampled=(213_874, 512, 4096, 5),
    loss=(8192, 256_000, 2304),
    large=(3_000_000, 768, 1024),
    square=8192,
    copied=2 * 10**9,
    other_blocks=(128 * 2**20,),
)
OF_A_PROCESSOR = Sizes(
    exact=(20_000, 5_000, 64),
    batch=512,
    sampled=(50_000, 64, 512, 5),
    loss=(512, 10_000, 128),
    large=(50_000, 64, 128),
    square=768,
    copied=10**8,
    other_blocks=(2**18, 2**20),
)
