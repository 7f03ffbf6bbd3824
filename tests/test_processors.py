"""What is to hold on any processor: matrix products add up in another order on each, by the shape of the matrices."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
NAMES = "change_no_bit or number_of_threads or threads_change_nothing or give_the_same_tree"
KERNELS = """
import json, numpy, scipy.linalg, threadpoolctl
print(json.dumps([found.get("architecture") for found in threadpoolctl.threadpool_info()]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["Sandybridge", "Haswell", "SkylakeX"])
def test_bits_depend_on_no_threads_with_the_products_of(processor):
    environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
    found = subprocess.run([sys.executable, "-c", KERNELS], env=environment, capture_output=True, text=True)
    if found.returncode or set(json.loads(found.stdout)) != {processor}:
        pytest.skip(f"this machine has no products of {processor}: {found.stdout or found.stderr}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", NAMES]
    parts = [TESTS / part for part in ("evaluation", "kernels", "tree", "test_model.py", "test_predict.py")]
    ended = subprocess.run(
        [*command, "-m", "not slow", *parts], env=environment, capture_output=True, text=True, cwd=TESTS.parent
    )
    assert ended.returncode == 0, ended.stdout
