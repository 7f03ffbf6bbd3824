#!/usr/bin/env bash
# Start a SLURM of one node on the loopback interface, for tests: partitions cpu and gpu, two GPUs that are none.
# Needs root and the packages slurm-wlm and munge; for accounting also slurmdbd and mariadb-server.
#   tests/cluster/up.sh [FOLDER]                 state, keys and logs; default in the folder for temporary files
#   ACCOUNTING=1 tests/cluster/up.sh [FOLDER]    with accounting, so that sacct answers; accounts: xsoftmax
# It touches two things outside FOLDER, both undone by down.sh: links to its files in /etc/slurm (jobs find their
# configuration nowhere else, because Snakemake's plugin clears SLURM_CONF) and, if missing, this host in /etc/hosts.
set -euo pipefail
folder=${1:-${TMPDIR:-/tmp}/xsoftmax-slurm}
host=$(hostname -s)
munge=$folder/munge
configuration="slurm.conf gres.conf"

fail() { echo "up.sh: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "SLURM's daemons need root here"
for program in munged slurmctld slurmd sinfo setpriv; do
  command -v "$program" > /dev/null || [ -x "/usr/sbin/$program" ] || fail "no $program; apt-get install slurm-wlm munge"
done
for file in $configuration; do
  if [ -e "/etc/slurm/$file" ] && [ "$(readlink "/etc/slurm/$file")" != "$folder/$file" ]; then
    fail "/etc/slurm/$file belongs to another SLURM; not touching it"
  fi
done
export PATH=$PATH:/usr/sbin

mkdir -p "$folder"/{controller,node,log,dev} "$munge" /etc/slurm
chmod 755 "$folder" "$folder"/*
getent hosts "$host" > /dev/null || echo "127.0.0.1 $host # xsoftmax-slurm" >> /etc/hosts

# Authentication, with a key and a socket of its own; munged refuses files of others.
[ -s "$munge/key" ] || head -c 1024 /dev/urandom > "$munge/key"
chown -R munge:munge "$munge"
chmod 400 "$munge/key"
setpriv --reuid=munge --regid=munge --clear-groups munged --num-threads=2 \
  --key-file="$munge/key" --socket="$munge/socket" --pid-file="$munge/munged.pid" \
  --seed-file="$munge/seed" --log-file="$munge/log"

accounting="JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none"
if [ "${ACCOUNTING:-0}" = 1 ]; then
  accounting="JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=26819
AccountingStoragePass=$munge/socket
AccountingStorageTRES=gres/gpu"
fi

# A GPU is a character device to SLURM, which sets CUDA_VISIBLE_DEVICES by its number: twins of /dev/null do.
echo "AutoDetect=off" > "$folder/gres.conf"
for gpu in 0 1; do
  [ -e "$folder/dev/gpu$gpu" ] || mknod "$folder/dev/gpu$gpu" c 1 3
  echo "NodeName=$host Name=gpu Type=fake File=$folder/dev/gpu$gpu" >> "$folder/gres.conf"
done

# No cgroups, no systemd. Finished jobs stay visible to squeue for MinJobAge seconds.
: > "$folder/plugstack.conf"
cat > "$folder/slurm.conf" << CONF
ClusterName=xsoftmax-test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$munge/socket,cred_expire=5
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
$accounting
ReturnToService=2
KillWait=5
MinJobAge=3600
JobRequeue=1
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=0,batch_sched_delay=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/^MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo) Gres=gpu:fake:2
PartitionName=cpu Nodes=$host Default=YES MaxTime=INFINITE DefMemPerCPU=500
PartitionName=gpu Nodes=$host MaxTime=INFINITE DefMemPerCPU=500
CONF
for file in $configuration; do ln -sfn "$folder/$file" "/etc/slurm/$file"; done
unset SLURM_CONF

[ "${ACCOUNTING:-0}" != 1 ] || bash "$(dirname "$0")/accounting.sh" "$folder"
slurmctld
slurmd
for _ in $(seq 150); do
  [ "$(sinfo --noheader --Node --partition=cpu --format=%T 2> /dev/null)" = idle ] && exec sinfo
  sleep 0.1
done
tail -n 5 "$folder"/log/* >&2
fail "the node is not idle after 15 seconds; down.sh stops what was started"
