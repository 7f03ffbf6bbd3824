"""How fast XC text is read; the figure is printed (``pytest -s``)."""

import time

import numpy as np
import pytest

from xsoftmax.data.readers import xc

REQUIRED = 50  # MB/s


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(1000):
        features = np.sort(rng.choice(100_000, 100, replace=False))
        cells = " ".join(f"{feature}:{value:.6f}" for feature, value in zip(features, rng.random(100), strict=True))
        lines.append(",".join(map(str, rng.integers(0, 5000, 3))) + " " + cells)
    path = tmp_path_factory.mktemp("speed") / "a.txt"
    path.write_text("20000 100000 5000\n" + "\n".join(lines * 20))
    return path


@pytest.mark.alone
def test_xc_text_is_read_fast_enough(text):
    megabytes = text.stat().st_size / 1e6
    seconds = []
    for _ in range(4):
        start = time.process_time()
        rows = xc.read(data=text)
        seconds.append(time.process_time() - start)
    print(f"\n{megabytes:.0f} MB of XC text: {megabytes / min(seconds):.0f} MB/s")
    assert rows.features.nnz == 20_000 * 100
    assert megabytes / min(seconds) > REQUIRED
