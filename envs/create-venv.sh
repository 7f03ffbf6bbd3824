#!/usr/bin/env bash
# Create a virtual environment with pip in it: bash envs/create-venv.sh FOLDER   (PYTHON=… chooses the interpreter)
# Debian splits ensurepip from Python, so there are several ways; a half-made environment is removed. None of them asks
# for root, unless XSOFTMAX_APT=1 allows to install the package with apt.
set -euo pipefail
folder=$1

recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; }

works() { recent "$folder/bin/python" && "$folder/bin/python" -m pip --version > /dev/null 2>&1; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3.11 python3 python3.12 python3.13 python3.14 python}; do
    if recent "$candidate"; then echo "$candidate"; return; fi
  done
  echo "error: no Python of at least 3.11 (looked for ${PYTHON:-python3.11, python3, ...}); on Debian: apt-get install python3" >&2
  return 1
}

attempt() { # run a command that makes the environment; on failure leave nothing behind
  if "$@" > "$folder.log" 2>&1 && works; then rm -f "$folder.log"; return 0; fi
  rm -rf "$folder" "$folder.log"
  return 1
}

by_pip() { # as pip can where venv cannot: without ensurepip
  "$python" -m venv --without-pip "$folder" && "$python" -m pip --python "$folder/bin/python" install pip
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install_venv_package() {
  local package
  package=$("$python" -c 'import sys; print(f"python3.{sys.version_info.minor}-venv")')
  command -v apt-get > /dev/null || return 1
  { as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y "$package"; } \
    < /dev/null > /dev/null 2>&1
}

if works; then exit 0; fi
rm -rf "$folder"
python=$(find_python)
attempt "$python" -m venv "$folder" && exit 0
attempt virtualenv --python "$python" "$folder" && exit 0
attempt uv venv --seed --python "$python" "$folder" && exit 0
attempt by_pip && exit 0
if [ "${XSOFTMAX_APT:-}" = 1 ]; then
  echo "$python cannot make virtual environments yet; installing the package for it" >&2
  install_venv_package && attempt "$python" -m venv "$folder" && exit 0
fi
version=$("$python" -c 'import sys; print(f"3.{sys.version_info.minor}")')
echo "error: $python cannot make virtual environments, and there is no virtualenv, uv or pip that can; type: sudo apt-get install python$version-venv, then the same command again" >&2
exit 1
