"""numba's one door: without numba, everything loads and array forms give the same values."""

import json
import os
import subprocess
import sys
from pathlib import Path

from internal import without_numba
from xsoftmax.internal.fingerprint import ROOT


def test_without_numba_every_part_loads_and_every_objective_has_its_value():
    environment = os.environ | {"PYTHONPATH": str(ROOT.parent)}
    command = [sys.executable, Path(without_numba.__file__)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["values"] == without_numba.values()
    assert len(found["values"]) >= 17
    assert found["method"] == "sox"
    assert found["refusal"] == "wright_omega is compiled code, and numba is not installed: pip install numba"
