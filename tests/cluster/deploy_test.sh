#!/usr/bin/env bash
# The scripts of deploy/ for Slurm and mpirun: they start a mesh of four nodes, which meet by what the launcher knows, and
# verify what they send.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/cluster_lib.sh"

export WEFT=${WEFT_TEST_PROGRAM:-$root/build/bin/weft}
small=(--endpoints 1 --size 64K --iters 3 --warmup 0 --mode isolated)
expect_mesh() { # WHAT SOURCE: of four nodes, on four hosts, which were found in this way.
    local node
    expect_status 0 "$1"
    expect_text "rank 0 of 4 by $2" "$1"
    for node in 0 1 2 3; do
        grep -Eq "^node$node: n[0-3], " <<<"$output" || fail "$1: nothing of node$node in: $output"
    done
    [[ $(grep -Eo '^node[0-3]: n[0-3],' <<<"$output" | cut -d ' ' -f 2 | sort -u | wc -l) == 4 ]] ||
        fail "$1: not on four hosts: $output"
    expect_text '12 of 12 samples, 0 wrong of ' "$1"
    expect_text ': passed' "$1"
}

# by_sbatch SCRIPT FOLDER OPTION...: sbatch --wait looks every few seconds only.
# shellcheck disable=SC2016  # expanded inside
by_sbatch='cd -- "$2" || exit
    job=$(sbatch --parsable --nodes=4 --output="$2/out" "$1" "${@:3}") || exit
    until [[ $(scontrol show job "$job") =~ JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT) ]]; do sleep 0.1; done
    cat -- "$2/out"
    [[ ${BASH_REMATCH[1]} == COMPLETED ]]'
run "$here/slurm.sh" --limit 90 bash -c "$by_sbatch" bash "$root/deploy/slurm/weft-mesh.sbatch" "$scratch" "${small[@]}"
skip_if_unavailable
expect_mesh 'sbatch' Slurm
expect_text "meeting at file:$scratch/weft-mesh-" 'sbatch'
run env MASTER_PORT=29502 "$here/slurm.sh" --limit 90 bash -c "$by_sbatch" bash "$root/deploy/slurm/weft-mesh.sbatch" \
    "$scratch" "${small[@]}"
expect_mesh 'sbatch with MASTER_PORT' Slurm
expect_text 'meeting at n0:29502 ' 'sbatch with MASTER_PORT'

for mpirun in mpirun.openmpi mpiexec.mpich; do
    command -v "$mpirun" >/dev/null || { echo "skipped: needs the program $mpirun" && exit 77; }
    program "$scratch/$mpirun" mpirun <<<"exec $(type -P "$mpirun") \"\$@\""
done
printf 'n%d\n' 0 1 2 3 >"$scratch/hosts"
# by_rsh COMMAND...: as over ssh, which hands on no variables of ours: the sizes and the key come by what mpirun hands on.
# shellcheck disable=SC2016  # expanded inside
by_rsh='rsh=$TMPDIR/rsh
    printf "%s\n" "#!/bin/bash" "unset \$(compgen -e WEFT_)" "exec $CLUSTER_RSH \"\$@\"" >"$rsh" && chmod +x "$rsh" || exit
    export OMPI_MCA_plm_rsh_agent=$rsh PRTE_MCA_plm_ssh_agent=$rsh HYDRA_LAUNCHER_EXEC=$rsh
    "$@"'
(umask 077 && "$WEFT" key >"$scratch/weft.key") || fail 'no key'
set_by_environment=(WEFT_BEGIN=64K WEFT_END=64K WEFT_KEY_FILE="$scratch/weft.key")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
for mpirun in mpirun.openmpi mpiexec.mpich; do
    run env PATH="$scratch/$mpirun:$PATH" "${set_by_environment[@]}" "$net" --limit 90 bash -c "$by_rsh" bash \
        "$root/deploy/mpi/weft-mesh.sh" "$scratch/hosts" --endpoints 1 --iters 3 --warmup 0 --mode isolated
    source=PMIx
    [[ $mpirun != *mpich ]] || source=PMI-1
    expect_mesh "$mpirun" "$source"
done
run "$root/deploy/mpi/weft-mesh.sh"
expect_status 2 'no host file'
expect_lines 1 'no host file'

finish
