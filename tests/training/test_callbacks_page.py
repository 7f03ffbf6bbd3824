"""The example of docs/callbacks.md, taken from the page and run as it stands."""

import re
import subprocess
import sys
from pathlib import Path

from xsoftmax.training.callbacks import Callback, RunningFit

PAGE = (Path(__file__).parents[2] / "docs" / "callbacks.md").read_text()


def test_the_example_runs(tmp_path):
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "mine.py").write_text(example)
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"stopped early 9\d% of validation rows are right \(5, 6\)\n", done.stdout)
    assert "mine softmax seed 0: epoch 0, trained for" in done.stderr
    assert "warning" not in done.stderr


def test_the_page_names_every_hook():
    hooks = {name for name in vars(Callback) if not name.startswith("_")}
    listed = set(re.findall(r"`(\w+)\((?:fit|arrays)?(?:, row)?\)`", PAGE))
    assert hooks <= listed
    assert all(hasattr(RunningFit, name) for name in listed - hooks - {"fit"})
