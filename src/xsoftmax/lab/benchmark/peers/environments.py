"""An environment of its own for each peer, made when it is first needed."""

import hashlib
import subprocess
import sys
from pathlib import Path

from xsoftmax.internal.errors import InputError

CREATE = Path("envs/create-venv.sh")
REQUIREMENTS = Path("envs/peers")


class NotInstallableError(InputError):
    """A peer can't be installed here; the message is the last thing the installer said."""


def python_of(environment: str | None, folder: Path) -> Path:
    """Path of the interpreter of an environment, which is made if it is not there or its requirements have changed.

    Parameters
    ----------
    environment : str or None
        Name of a file in envs/peers; None: the interpreter that runs this.
    folder : Path
        Where the environments are.

    Raises
    ------
    NotInstallableError
        If it can't be made.
    """
    if environment is None:
        return Path(sys.executable)
    requirements = REQUIREMENTS / f"{environment}.txt"
    venv = folder / environment
    stamp, wanted = venv / "requirements.sha256", hashlib.sha256(requirements.read_bytes()).hexdigest()
    python = (venv / "bin/python").absolute()
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        print(f"making the environment {venv}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        _run(["bash", str(CREATE), str(venv)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
        _run([*pip, "--requirement", str(requirements)])
        stamp.write_text(wanted)
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error")] or lines
        raise NotInstallableError(errors[-1] if errors else f"{command[0]} ended with status {done.returncode}")
