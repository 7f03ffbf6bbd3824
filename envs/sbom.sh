#!/usr/bin/env bash
# List the locked dependencies as a CycloneDX SBOM (software bill of materials).
#   envs/sbom.sh [FILE] [PYTHON]      by default results/sbom.json
# The program that writes it lives in an environment of its own, which is removed: nothing of it is in the lock.
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:-results/sbom.json}
python=${2:-python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0 2> "$folder/said" ||
  { tail -n 1 "$folder/said" >&2; echo "error: cyclonedx-bom cannot be installed; run \`make sbom\` where pip reaches a package index" >&2; exit 1; }
mkdir -p "$(dirname "$file")"
PYTHONWARNINGS=ignore "$folder/venv/bin/cyclonedx-py" requirements --pyproject pyproject.toml --mc-type library --output-reproducible \
  --output-format JSON --output-file "$folder/sbom.json" requirements.lock
mv "$folder/sbom.json" "$file"
echo "$file: written"
