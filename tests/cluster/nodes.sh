#!/usr/bin/env bash
# nodes.sh: starts a command on every node of a cluster (scripts/cluster_net.sh), by a launcher that clusters have.
set -u

usage() {
    cat <<'END'
usage: nodes.sh [--each P] [OPTION of cluster_net.sh]... LAUNCHER COMMAND [ARG]...

Makes a cluster, starts COMMAND P times (default 1) in each node, and takes the cluster down. Ranks of a node are
neighbours. LAUNCHER is one of:

  slurm       srun --mpi=none, of a Slurm that is started for it
  slurm-pmix  srun --mpi=pmix
  openmpi     Open MPI's mpirun
  mpich       MPICH's mpiexec
  torchrun    the variables that torchrun sets, by this script; the others end when one has failed

Exit status: the launcher's; 77 the launcher or the cluster cannot be had here, with the reason.
END
}

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
# shellcheck source=scripts/lib.sh
. "$root/scripts/lib.sh"
self=$root/tests/cluster/nodes.sh
cluster=$root/scripts/cluster_net.sh

hosts() {
    local node list=''
    for ((node = 0; node < CLUSTER_NODES; node++)); do
        list+=",n$node$1"
    done
    echo "${list#,}"
}

by_slurm() {
    srun --nodes="$CLUSTER_NODES" --ntasks=$((CLUSTER_NODES * each)) --ntasks-per-node="$each" "$@"
}

# Version 5 has another name for ssh's place.
by_openmpi() {
    export OMPI_MCA_plm_rsh_agent=$CLUSTER_RSH PRTE_MCA_plm_ssh_agent=$CLUSTER_RSH
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun.openmpi --host "$(hosts ":$each")" -n $((CLUSTER_NODES * each)) --bind-to none "$@"
}

by_mpich() {
    mpiexec.mpich -launcher ssh -launcher-exec "$CLUSTER_RSH" -hosts "$(hosts ":$each")" -n $((CLUSTER_NODES * each)) "$@"
}

by_torchrun() {
    local node local_rank status=0
    local -a running=()
    for ((node = 0; node < CLUSTER_NODES; node++)); do
        for ((local_rank = 0; local_rank < each; local_rank++)); do
            # The nodes are new: no port of theirs is taken.
            env RANK=$((node * each + local_rank)) WORLD_SIZE=$((CLUSTER_NODES * each)) LOCAL_RANK="$local_rank" \
                LOCAL_WORLD_SIZE="$each" MASTER_ADDR=n0 MASTER_PORT=29500 "$cluster" --on "n$node" "$@" </dev/null &
            running+=("$!")
        done
    done
    while ((status == 0 && ${#running[@]})); do
        wait -n -p ended "${running[@]}" || status=$?
        mapfile -t running < <(printf '%s\n' "${running[@]}" | grep -vx "$ended")
    done
    ((${#running[@]} == 0)) || kill -TERM "${running[@]}"
    wait
    return "$status"
}

# needs PROGRAM PACKAGE
needs() { command -v "$1" >/dev/null || unavailable "needs the program $1 (Debian, Ubuntu: $2)"; }

if [[ ${1-} == --inside ]]; then
    each=$2
    case $3 in
    slurm) by_slurm --mpi=none "${@:4}" ;;
    slurm-pmix)
        [[ $(srun --mpi=list 2>&1) == *pmix* ]] || unavailable 'this Slurm has no --mpi=pmix'
        by_slurm --mpi=pmix "${@:4}"
        ;;
    *) "by_$3" "${@:4}" ;;
    esac
    exit
fi

each=1 options=()
while [[ ${1-} == -* ]]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --each)
        [[ ${2-} =~ ^[1-9][0-9]?$ ]] || wrong_usage "--each '${2-}': from 1 to 99"
        each=$2
        ;;
    *) options+=("$1" "${2-}") ;;
    esac
    shift $(($# > 1 ? 2 : 1))
done
(($# > 1)) || wrong_usage 'no launcher, or no command: see --help'
case $1 in
slurm*) cluster=$root/tests/cluster/slurm.sh ;;&
slurm | slurm-pmix | torchrun) ;;
openmpi) needs mpirun.openmpi openmpi-bin ;;
mpich) needs mpiexec.mpich mpich ;;
*) wrong_usage "launcher '$1': slurm, slurm-pmix, openmpi, mpich or torchrun" ;;
esac
exec "$cluster" "${options[@]}" bash "$self" --inside "$each" "$@"
