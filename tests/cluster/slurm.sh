#!/usr/bin/env bash
# slurm.sh: a real Slurm on the nodes of scripts/cluster_net.sh: slurmctld in the head, a slurmd in each node. All that they
# write is in the cluster's own /run.
set -u

usage() {
    cat <<'END'
usage: slurm.sh [OPTION of cluster_net.sh]... COMMAND [ARG]...

Starts Slurm, runs COMMAND in the head, where srun is, and ends all of it: srun -N4 hostname.

Exit status: that of COMMAND; 1 Slurm does not start, with what it said; 77 there can be none here, with the reason.
END
}

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
# shellcheck source=scripts/lib.sh
. "$root/scripts/lib.sh"
cluster=$root/scripts/cluster_net.sh
at=/run/slurm

write_configuration() {
    local node last=$((CLUSTER_NODES - 1)) me
    me=$("${as[@]}" id -un)
    mkdir -p $at/state
    for ((node = 0; node <= last; node++)); do
        mkdir -p $at/{spool,tmp}/n$node
    done
    cat >$at/slurm.conf <<END
ClusterName=weft
SlurmctldHost=head
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$at/munge
CredType=cred/munge
StateSaveLocation=$at/state
SlurmdSpoolDir=$at/spool/%n
TmpFS=$at/tmp/%n
SlurmctldPidFile=$at/slurmctld.pid
SlurmdPidFile=$at/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
NodeName=n[0-$last] CPUs=64
PartitionName=all Nodes=ALL Default=YES OverSubscribe=NO State=UP
END
    # Nothing here asks for cgroups. Before 24.05 one of their plugins is loaded all the same: this one then does nothing.
    if [[ $("${as[@]}" slurmd -V) =~ \ ([0-9]+)\.([0-9]+) ]] && ((BASH_REMATCH[1] * 100 + 10#${BASH_REMATCH[2]} >= 2405)); then
        echo 'CgroupPlugin=disabled' >$at/cgroup.conf
    else
        echo 'CgroupPlugin=cgroup/v1' >$at/cgroup.conf
    fi
    (umask 077 && head -c 128 /dev/urandom >$at/key)
}

# service NAME COMMAND...: what it says is in a file of that name.
service() {
    "${@:2}" >"$at/$1.log" 2>&1 </dev/null &
    services[$!]=$1
}

# all_run: none has ended.
all_run() {
    local process
    for process in "${!services[@]}"; do
        kill -0 "$process" 2>/dev/null || { ended=${services[$process]} && return 1; }
    done
}

# wait_until WHAT COMMAND...: for 30 seconds at most, and as long as the services run.
wait_until() {
    local what=$1 late=$((SECONDS + 30))
    shift
    until "$@"; do
        all_run || give_up "$ended has ended" "$ended"
        ((SECONDS < late)) || give_up "$what: not within 30 s" slurmctld
        sleep 0.02
    done
}

# give_up WHAT SERVICE: with the end of what that one said.
give_up() {
    say "$1"
    tail -n 15 -- "$at/$2.log" >&2
    exit 1
}

nodes_are_idle() {
    [[ $("${as[@]}" sinfo --noheader --Node --format=%T 2>/dev/null | grep -cx idle) == "$CLUSTER_NODES" ]]
}

start() {
    local node
    local -A services=()
    write_configuration
    export SLURM_CONF=$at/slurm.conf
    # --force: owners of folders above may be unknown in a user namespace.
    service munged "${as[@]}" munged --foreground --force --key-file=$at/key --socket=$at/munge --pid-file=$at/munged.pid \
        --seed-file=$at/seed --log-file=$at/munged.log
    wait_until munged test -S $at/munge
    service slurmctld "${as[@]}" slurmctld -D
    for ((node = 0; node < CLUSTER_NODES; node++)); do
        service "slurmd.n$node" "$cluster" --on "n$node" "${as[@]}" slurmd -D
    done
    wait_until 'all nodes are idle' nodes_are_idle
}

if [[ ${1-} == --inside ]]; then
    # A root that may not change its groups is none for slurmd: then all of Slurm runs as a user who has no need to.
    as=()
    [[ $(cat /proc/self/setgroups 2>/dev/null) != deny ]] || as=(unshare --user --map-user=daemon --map-group=daemon)
    start
    "${as[@]}" "${@:2}"
    exit
fi
case ${1---help} in
-h | --help) usage && exit 0 ;;
esac
PATH=$PATH:/usr/sbin:/sbin
for name in munged slurmctld slurmd srun sinfo; do
    command -v "$name" >/dev/null ||
        unavailable "needs the program $name (Debian, Ubuntu: slurmctld slurmd slurm-client munge)"
done
options=()
while [[ ${1-} == -* ]]; do
    options+=("$1" "${2-}")
    shift $(($# > 1 ? 2 : 1))
done
(($#)) || wrong_usage 'no command: see --help'
exec "$cluster" "${options[@]}" bash "$root/tests/cluster/slurm.sh" --inside "$@"
