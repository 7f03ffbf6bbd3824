#!/usr/bin/env bash
# Hold requirements.lock against the list of known vulnerabilities.
#   envs/audit.sh [PYTHON]
# Fails if one is known. Where no list can be reached it says so, loudly, and does not fail: nothing was found, because
# nothing was looked at.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pip-audit==2.9.0 2> "$folder/said" || { echo "NOT AUDITED: pip-audit cannot be installed"; exit 0; }
audit() { "$folder/venv/bin/pip-audit" --requirement requirements.lock --require-hashes --disable-pip --progress-spinner off --strict "$@"; }
for service in pypi osv; do
  if audit --vulnerability-service "$service" > "$folder/said" 2>&1; then
    cat "$folder/said"
    echo "audited: requirements.lock by $service, no known vulnerability"
    exit 0
  elif grep -qi "found .* known vulnerabilit" "$folder/said"; then
    cat "$folder/said"
    exit 1
  fi
done
tail -n 1 "$folder/said"
echo "NOT AUDITED: neither PyPI's nor OSV's list of vulnerabilities can be reached from here; run \`make audit\` where one can"
