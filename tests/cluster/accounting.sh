#!/usr/bin/env bash
# Accounting for the SLURM of up.sh, which calls this: a MariaDB on a port of its own, on loopback, and slurmdbd.
#   tests/cluster/accounting.sh FOLDER
set -euo pipefail
folder=$1
socket=$folder/mariadb.socket
database=$folder/mariadb

fail() { echo "accounting.sh: $*" >&2; exit 1; }

for program in slurmdbd mariadbd mariadb-install-db; do
  command -v "$program" > /dev/null || fail "no $program; apt-get install slurmdbd mariadb-server"
done
if [ ! -d "$database" ]; then
  mkdir -p "$database"
  mariadb-install-db --no-defaults --user=root --datadir="$database" --auth-root-authentication-method=normal \
    --skip-test-db > "$folder/log/mariadb-install" 2>&1 || fail "see $folder/log/mariadb-install"
fi
mariadbd --no-defaults --user=root --datadir="$database" --socket="$socket" --pid-file="$folder/mariadb.pid" \
  --bind-address=127.0.0.1 --port=26820 --innodb-buffer-pool-size=64M > "$folder/log/mariadb" 2>&1 < /dev/null &
for _ in $(seq 300); do
  mariadb-admin --no-defaults --socket="$socket" ping > /dev/null 2>&1 && break
  sleep 0.1
done
password=$(head -c 12 /dev/urandom | od -An -tx1 | tr -d ' \n')
mariadb --no-defaults --socket="$socket" << SQL
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE OR REPLACE USER slurm@'127.0.0.1' IDENTIFIED BY '$password';
CREATE OR REPLACE USER slurm@localhost IDENTIFIED BY '$password';
GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1', slurm@localhost;
SQL

cat > "$folder/slurmdbd.conf" << CONF
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
DbdHost=localhost
DbdPort=26819
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=26820
StorageUser=slurm
StoragePass=$password
StorageLoc=slurm_acct_db
LogFile=$folder/log/slurmdbd
PidFile=$folder/slurmdbd.pid
CONF
chmod 600 "$folder/slurmdbd.conf"
ln -sfn "$folder/slurmdbd.conf" /etc/slurm/slurmdbd.conf
slurmdbd
for _ in $(seq 100); do
  sacctmgr --noheader list cluster > /dev/null 2>&1 && break
  sleep 0.1
done
sacctmgr --noheader list cluster > /dev/null 2>&1 || { tail -n 5 "$folder/log/slurmdbd" >&2; fail "slurmdbd does not answer"; }
for what in "cluster xsoftmax-test" "account xsoftmax" "user $(id -un) account=xsoftmax"; do
  # shellcheck disable=SC2086
  sacctmgr --immediate add $what > /dev/null || true # it may be there already
done
