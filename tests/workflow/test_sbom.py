"""The SBOM names all that is locked."""

import json
import os
import re
import subprocess
import sys

import pytest

from workflow.checkout import REPOSITORY


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("XSOFTMAX_FRESH") != "1", reason="needs a package index, as XSOFTMAX_FRESH=1 says")
def test_the_sbom_names_all_that_is_locked(tmp_path):
    file = tmp_path / "new" / "sbom.json"
    subprocess.run(["bash", REPOSITORY / "envs/sbom.sh", file, sys.executable], check=True)
    found = json.loads(file.read_text(encoding="utf-8"))
    lock = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
    assert found["bomFormat"] == "CycloneDX"
    assert found["metadata"]["component"]["name"] == "xsoftmax"
    locked = set(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", lock, re.MULTILINE))
    assert {(part["name"], part["version"]) for part in found["components"]} == locked
    assert all(part["externalReferences"][0]["hashes"] for part in found["components"])
    assert "cyclonedx" not in lock
