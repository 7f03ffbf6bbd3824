#!/usr/bin/env bash
# Stop what up.sh started, by its own pid files, and take back what it changed outside its folder.
set -euo pipefail
folder=${1:-${TMPDIR:-/tmp}/xsoftmax-slurm}
export PATH=$PATH:/usr/sbin

for file in "$folder"/{slurmd-*,slurmctld,slurmdbd,mariadb,munge/munged}.pid; do
  [ -s "$file" ] || continue
  pid=$(cat "$file")
  kill "$pid" 2> /dev/null || continue
  for _ in $(seq 100); do kill -0 "$pid" 2> /dev/null || break; sleep 0.1; done
done
for file in slurm.conf gres.conf slurmdbd.conf; do
  [ "$(readlink "/etc/slurm/$file")" != "$folder/$file" ] || rm "/etc/slurm/$file"
done
for name in $(ip netns list 2> /dev/null | grep -o '^xsoftmax-[0-9]*'); do ip netns delete "$name"; done
[ ! -e /sys/class/net/xsoftmax-slurm ] || ip link delete xsoftmax-slurm
if grep -q '# xsoftmax-slurm$' /etc/hosts; then # no sed -i: containers mount this file, it cannot be replaced
  hosts=$(grep -v '# xsoftmax-slurm$' /etc/hosts)
  printf '%s\n' "$hosts" > /etc/hosts
fi
rm -rf "$folder"
