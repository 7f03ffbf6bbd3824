#!/usr/bin/env bash
# Stop what up.sh started, by its own pid files, and take back what it changed outside its folder.
set -euo pipefail
folder=${1:-${TMPDIR:-/tmp}/xsoftmax-slurm}
[ -d "$folder" ] || exit 0

for name in slurmd.pid slurmctld.pid slurmdbd.pid mariadb.pid munge/munged.pid; do
  [ -s "$folder/$name" ] || continue
  pid=$(cat "$folder/$name")
  kill "$pid" 2> /dev/null || continue
  for _ in $(seq 100); do kill -0 "$pid" 2> /dev/null || break; sleep 0.1; done
done
for file in slurm.conf gres.conf slurmdbd.conf; do
  [ "$(readlink "/etc/slurm/$file")" != "$folder/$file" ] || rm "/etc/slurm/$file"
done
if grep -q '# xsoftmax-slurm$' /etc/hosts; then # no sed -i: containers mount this file, it cannot be replaced
  hosts=$(grep -v '# xsoftmax-slurm$' /etc/hosts)
  printf '%s\n' "$hosts" > /etc/hosts
fi
rm -rf "$folder"
