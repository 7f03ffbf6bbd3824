#!/usr/bin/env bash
# Start a SLURM of one node on the loopback interface, for tests. Needs root and the packages slurm-wlm and munge.
#   tests/cluster/up.sh [FOLDER]      state, keys and logs; default in the folder for temporary files
# It touches two things outside FOLDER, both undone by down.sh: the link /etc/slurm/slurm.conf (jobs find their
# configuration nowhere else, because Snakemake's plugin clears SLURM_CONF) and, if missing, this host in /etc/hosts.
set -euo pipefail
folder=${1:-${TMPDIR:-/tmp}/xsoftmax-slurm}
host=$(hostname -s)
munge=$folder/munge

fail() { echo "up.sh: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "SLURM's daemons need root here"
for program in munged slurmctld slurmd sinfo setpriv; do
  command -v "$program" > /dev/null || [ -x "/usr/sbin/$program" ] || fail "no $program; apt-get install slurm-wlm munge"
done
if [ -e /etc/slurm/slurm.conf ] && [ "$(readlink /etc/slurm/slurm.conf)" != "$folder/slurm.conf" ]; then
  fail "/etc/slurm/slurm.conf belongs to another SLURM; not touching it"
fi
export PATH=$PATH:/usr/sbin

mkdir -p "$folder"/{controller,node,log} "$munge" /etc/slurm
chmod 755 "$folder" "$folder"/*
getent hosts "$host" > /dev/null || echo "127.0.0.1 $host # xsoftmax-slurm" >> /etc/hosts

# Authentication, with a key and a socket of its own; munged refuses files of others.
[ -s "$munge/key" ] || head -c 1024 /dev/urandom > "$munge/key"
chown -R munge:munge "$munge"
chmod 400 "$munge/key"
setpriv --reuid=munge --regid=munge --clear-groups munged --num-threads=2 \
  --key-file="$munge/key" --socket="$munge/socket" --pid-file="$munge/munged.pid" \
  --seed-file="$munge/seed" --log-file="$munge/log"

# No cgroups, no accounting, no systemd. Finished jobs stay visible to squeue for MinJobAge seconds.
: > "$folder/plugstack.conf"
cat > "$folder/slurm.conf" << CONF
ClusterName=xsoftmax-test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$munge/socket
CredType=cred/munge
StateSaveLocation=$folder/controller
SlurmdSpoolDir=$folder/node
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
PlugStackConfig=$folder/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=5
MinJobAge=3600
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=0,batch_sched_delay=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/^MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE DefMemPerCPU=500
CONF
ln -sfn "$folder/slurm.conf" /etc/slurm/slurm.conf
unset SLURM_CONF

slurmctld
slurmd
for _ in $(seq 150); do
  [ "$(sinfo --noheader --Node --format=%T 2> /dev/null)" = idle ] && exec sinfo
  sleep 0.1
done
tail -n 5 "$folder"/log/* >&2
fail "the node is not idle after 15 seconds; down.sh stops what was started"
