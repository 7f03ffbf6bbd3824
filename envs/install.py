"""Install what a lock names into the environment of this Python: `python envs/install.py LOCK`.

Pip compares every file with the hashes in the lock. Meanwhile a terminal gets a line that counts; a log gets the end.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

INTERVAL = 0.2  # seconds between two looks at what pip has done
FETCHED = re.compile(
    r"^ *(?:Downloading|Using cached|Processing) (\S+\.(?:whl|tar\.gz|zip)(?: \(.*\))?)$", re.MULTILINE
)


def entries(lock: str) -> int:
    """Return how many packages a lock names, for any machine."""
    return len(re.findall(r"^[\w.-]+(?:\[.*\])?==", lock, re.MULTILINE))


def progress(printed: str, n_locked: int, n_installed: int) -> str:
    """Say how far pip is, by what it has printed and how many packages it has installed."""
    if found := re.search(r"^Installing collected packages: (.*)$", printed, re.MULTILINE):
        return f"installing {n_installed} of {found[1].count(',') + 1}"
    there = set(re.findall(r"^Requirement already satisfied: ([\w.-]+)", printed, re.MULTILINE))
    wanted = n_locked - len(re.findall(r"^Ignoring ", printed, re.MULTILINE)) - len(there)
    fetched = FETCHED.findall(printed)
    return f"fetched {len(fetched)} of {wanted}" + (f": {fetched[-1].rpartition('/')[2]}" if fetched else "")


def failure(printed: str) -> str:
    """Say why pip gave up, and what to do."""
    if found := re.search(r"^ERROR: THESE PACKAGES DO NOT MATCH THE HASHES.*\n +(\S+)", printed, re.MULTILINE):
        return f"{found[1]} is not the file of which the lock has the hash; find out why before you install it"
    lines = [line.strip() for line in printed.splitlines() if line.strip()] or ["nothing"]
    errors = [line for line in lines if re.match(r"ERROR: (?!Exception:)", line)]
    if "after connection broken by" in printed and (not errors or "No matching distribution" in errors[-1]):
        return "the package index does not answer; when the network is there, the same command goes on from here"
    return f"pip says: {(errors or lines)[-1].removeprefix('ERROR: ')}; then the same command goes on from here"


def installed() -> set[Path]:
    """Return the folders of packages that pip has finished."""
    return {file.parent for file in Path(sysconfig.get_path("purelib")).glob("*.dist-info/INSTALLER")}


def show(line: str) -> None:
    """Put a line in place of the last one, if someone looks."""
    if sys.stdout.isatty():
        print(f"\r{line[: shutil.get_terminal_size().columns - 1]}\033[K", end="", flush=True)


def main(lock: Path) -> int:
    """Run pip and return its exit status."""
    log, began, before = Path(sys.prefix) / "install.log", time.monotonic(), installed()
    n_locked = entries(lock.read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    with log.open("w", encoding="utf-8") as out:
        pip = subprocess.Popen([*command, "--require-hashes", "-r", lock], stdout=out, stderr=subprocess.STDOUT)
        while pip.poll() is None:
            said = progress(read(log), n_locked, len(installed() - before))
            show(f"{lock}, {time.monotonic() - began:.0f} s: {said}")
            time.sleep(INTERVAL)
    show("")
    if pip.returncode:
        print(f"error: {lock}: {failure(read(log))}; all that pip printed is in {log}", file=sys.stderr)
    else:
        print(f"{lock}: {len(installed() - before)} packages installed in {time.monotonic() - began:.0f} s")
    return pip.returncode


def read(log: Path) -> str:
    """Return what pip has printed."""
    return log.read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit("\nstopped; the same command goes on from there")
