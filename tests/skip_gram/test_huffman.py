from itertools import pairwise

import numpy as np
import pytest

from skip_gram.naive_skip_gram import cost_of_huffman
from xsoftmax.skip_gram.huffman import huffman


@pytest.mark.parametrize(
    "counts",
    [
        [5, 3],
        [1, 1, 1],
        [8, 4, 2, 1, 1],
        [100, 1, 1, 1, 1, 1, 1],
        *np.random.default_rng(0).integers(1, 99, (20, 30)),
    ],
)
def test_the_tree_is_optimal_and_its_codes_are_prefixes_of_none(counts):
    counts = np.sort(np.asarray(counts, np.int64))[::-1].copy()
    tree = huffman(counts)
    lengths = np.diff(tree.starts)
    assert (counts * lengths).sum() == cost_of_huffman(counts.tolist())
    codes = ["".join(map(str, tree.sides[slice(*tree.starts[k : k + 2])])) for k in range(len(counts))]
    assert sum(0.5 ** len(code) for code in codes) == 1
    ordered = sorted(codes)
    assert not any(second.startswith(first) for first, second in pairwise(ordered))


def test_a_node_has_one_code_whoever_passes_it():
    tree = huffman(np.arange(40, 0, -1))
    found = {}
    for k in range(40):
        path = slice(*tree.starts[k : k + 2])
        sides = tree.sides[path].tolist()
        assert tree.nodes[path][0] == 38  # the root
        for depth, node in enumerate(tree.nodes[path].tolist()):
            assert found.setdefault(node, sides[:depth]) == sides[:depth]
    assert len(found) == 39
