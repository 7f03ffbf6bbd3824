#!/usr/bin/env bash
# Start a SLURM for tests: partitions cpu and gpu, nodes with two GPUs each that are none.
# Needs root and the packages slurm-wlm and munge; for accounting also slurmdbd and mariadb-server.
#   tests/cluster/up.sh [FOLDER]                 one node, this host, on its loopback interface; FOLDER is for state,
#                                                keys and logs, and lies in that for temporary files if not named
#   NODES=2 tests/cluster/up.sh [FOLDER]         so many nodes, each with a network and a host name of its own, and this
#                                                host, where jobs are submitted, as none of them; needs iproute2
#   ACCOUNTING=1 tests/cluster/up.sh [FOLDER]    with accounting, so that sacct answers; accounts: xsoftmax
# What it touches outside FOLDER is undone by down.sh: links to its files in /etc/slurm (jobs find their configuration
# nowhere else, because Snakemake's plugin clears SLURM_CONF), names of hosts in /etc/hosts, and the nodes' networks.
set -euo pipefail
folder=${1:-${TMPDIR:-/tmp}/xsoftmax-slurm}
host=$(hostname -s)
munge=$folder/munge
network=10.213.77 # of nodes that are not this host
configuration="slurm.conf gres.conf"
n_nodes=${NODES:-1}

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
named() { echo "$1 $2 # xsoftmax-slurm" >> /etc/hosts; }
getent hosts "$host" > /dev/null || named 127.0.0.1 "$host"

# Nodes of their own share this host's processors, files and keys, and nothing of its network: a bridge joins them, on
# which each has an interface called fabric.
login=$host
controller=127.0.0.1
nodes=$host
addresses=$controller
if [ "$n_nodes" != 1 ]; then
  login=xsoftmax-0 # by its own name this host is at 127.0.0.1
  controller=$network.254
  named "$controller" "$login"
  ip link add xsoftmax-slurm type bridge
  ip address add "$controller/24" dev xsoftmax-slurm
  ip link set xsoftmax-slurm up
  nodes="xsoftmax-[1-$n_nodes]"
  addresses="$network.[1-$n_nodes]"
  for node in $(seq "$n_nodes"); do
    ip netns add "xsoftmax-$node"
    ip link add "xs-slurm-$node" type veth peer name fabric netns "xsoftmax-$node"
    ip link set "xs-slurm-$node" master xsoftmax-slurm up
    ip -netns "xsoftmax-$node" address add "$network.$node/24" dev fabric
    ip -netns "xsoftmax-$node" link set fabric up
    ip -netns "xsoftmax-$node" link set lo up
    named "$network.$node" "xsoftmax-$node"
  done
fi

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
  echo "NodeName=$nodes Name=gpu Type=fake File=$folder/dev/gpu$gpu" >> "$folder/gres.conf"
done

# No cgroups, no systemd. Finished jobs stay visible to squeue for MinJobAge seconds.
: > "$folder/plugstack.conf"
cat > "$folder/slurm.conf" << CONF
ClusterName=xsoftmax-test
SlurmctldHost=$login($controller)
SlurmctldPort=26817
SlurmdPort=26818
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/controller
SlurmdSpoolDir=$folder/node/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd-%n
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
NodeName=$nodes NodeAddr=$addresses CPUs=$(nproc) RealMemory=$(awk '/^MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo) Gres=gpu:fake:2
PartitionName=cpu Nodes=$nodes Default=YES MaxTime=INFINITE DefMemPerCPU=500
PartitionName=gpu Nodes=$nodes MaxTime=INFINITE DefMemPerCPU=500
CONF
for file in $configuration; do ln -sfn "$folder/$file" "/etc/slurm/$file"; done
unset SLURM_CONF

[ "${ACCOUNTING:-0}" != 1 ] || bash "$(dirname "$0")/accounting.sh" "$folder"
if [ "$n_nodes" = 1 ]; then
  slurmctld
  slurmd
else
  unshare --uts sh -c "hostname $login && exec slurmctld"
  for node in $(seq "$n_nodes"); do
    nsenter --net="/run/netns/xsoftmax-$node" unshare --uts sh -c "hostname xsoftmax-$node && exec slurmd"
  done
fi
for _ in $(seq 150); do
  [ "$(timeout 5 sinfo --noheader --Node --partition=cpu --format=%T 2> /dev/null | grep -cx idle)" = "$n_nodes" ] && exec sinfo
  sleep 0.1
done
tail -n 5 "$folder"/log/* >&2
fail "not all nodes are idle after 15 seconds; down.sh stops what was started"
